//! Where checkpoints are kept between runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variables that say where caches live. Empty ones count as absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheEnvironment {
    /// `HEADWATER_CACHE`: the folder itself.
    pub(crate) headwater_cache: Option<OsString>,
    /// `XDG_CACHE_HOME`: the folder of all caches; must be absolute, as its specification says.
    pub(crate) xdg_cache_home: Option<OsString>,
    /// `LOCALAPPDATA`: the same on Windows.
    pub(crate) local_app_data: Option<OsString>,
    pub(crate) home: Option<OsString>,
    /// Where a program may leave temporary files: the last resort.
    pub(crate) temporary: PathBuf,
}

impl CacheEnvironment {
    pub(crate) fn of_process() -> Self {
        Self {
            headwater_cache: std::env::var_os("HEADWATER_CACHE"),
            xdg_cache_home: std::env::var_os("XDG_CACHE_HOME"),
            local_app_data: std::env::var_os("LOCALAPPDATA"),
            home: std::env::var_os("HOME"),
            temporary: std::env::temp_dir(),
        }
    }
}

/// `HEADWATER_CACHE`, or `headwater` in the folder of caches of this user.
pub(crate) fn cache_folder(environment: &CacheEnvironment) -> PathBuf {
    let CacheEnvironment { headwater_cache, xdg_cache_home, local_app_data, home, temporary } =
        environment;
    let given = |variable: &Option<OsString>| {
        variable.as_deref().filter(|v| !v.is_empty()).map(Path::new).map(Path::to_owned)
    };
    given(headwater_cache).unwrap_or_else(|| {
        given(xdg_cache_home)
            .filter(|folder| folder.is_absolute())
            .or_else(|| given(local_app_data))
            .or_else(|| given(home).map(|home| home.join(".cache")))
            .unwrap_or_else(|| temporary.clone())
            .join("headwater")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_follows_the_environment() {
        let absolute = |name: &str| std::env::temp_dir().join(name);
        let environment = CacheEnvironment {
            headwater_cache: Some("own".into()),
            xdg_cache_home: Some(absolute("xdg").into()),
            local_app_data: Some("local".into()),
            home: Some("home".into()),
            temporary: "temporary".into(),
        };
        assert_eq!(cache_folder(&environment), Path::new("own"));
        let environment = CacheEnvironment { headwater_cache: Some("".into()), ..environment };
        assert_eq!(cache_folder(&environment), absolute("xdg").join("headwater"));
        let environment = CacheEnvironment { xdg_cache_home: Some("xdg".into()), ..environment };
        assert_eq!(cache_folder(&environment), Path::new("local").join("headwater"));
        let environment = CacheEnvironment { local_app_data: None, ..environment };
        assert_eq!(cache_folder(&environment), Path::new("home").join(".cache").join("headwater"));
        let environment = CacheEnvironment { home: None, ..environment };
        assert_eq!(cache_folder(&environment), Path::new("temporary").join("headwater"));
    }
}

//! The commands of the guide about federations, run as they are written.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::remote::{PATIENCE, Running, incidents};

/// The lines of the `number`th block of commands, without the prompt, each with the machine it is for.
fn block(number: usize) -> Vec<(String, String)> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/across_machines.rs");
    let text = fs::read_to_string(guide).expect("the guide");
    let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches("//!").trim()).collect();
    let blocks: Vec<&[&str]> = lines.split(|line| line.starts_with("```")).collect();
    let commands = blocks[2 * number + 1].iter().map(|line| match line.split_once('$') {
        Some((machine, command)) => (machine.to_owned(), command.trim().to_owned()),
        None => ("here".to_owned(), (*line).to_owned()),
    });
    commands.collect()
}

/// Folders that stand for machines, and a port instead of the usual one.
struct Machines<'a> {
    root: tempfile::TempDir,
    port: u16,
    /// Models are made once for all of them.
    cache: &'a Path,
}

impl<'a> Machines<'a> {
    fn new(cache: &'a Path) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("its number").port();
        Self { root: tempfile::tempdir().expect("a temporary folder"), port, cache }
    }

    fn path(&self, machine: &str, name: &str) -> PathBuf {
        let folder = self.root.path().join(machine);
        fs::create_dir_all(&folder).expect("a folder");
        folder.join(name)
    }

    /// Starts a command as it is written, but for the port and for names that only resolve elsewhere.
    fn start(&self, machine: &str, command: &str, out: &str) -> Child {
        let port = self.port;
        let command = command
            .replace("mqtts://127.0.0.1", &format!("mqtts://127.0.0.1:{port}"))
            .replace("mqtts://control", &format!("mqtts://127.0.0.1:{port}"))
            .replace("--host control", "--host control --host 127.0.0.1");
        let mut words = command.split(' ');
        let is_ours = words.next() == Some("headwater");
        let program = if is_ours { env!("CARGO_BIN_EXE_headwater") } else { "mosquitto" };
        let mut more = Vec::new();
        if command.starts_with("headwater certs") {
            more.extend(["--port".to_owned(), port.to_string()]);
        }
        if command.starts_with("headwater serve") {
            more.push("--json".to_owned());
        }
        let file = |name: &str| File::create(self.path(machine, name)).expect("a file");
        let child = Command::new(program)
            .args(words)
            .args(more)
            .current_dir(self.path(machine, ""))
            .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()))
            .env("HEADWATER_CACHE", self.cache)
            .env("HEADWATER_CONFIG", self.path(machine, "config"))
            .stdin(Stdio::null())
            .stdout(file(out))
            .stderr(file(&format!("{out}.err")))
            .spawn();
        child.unwrap_or_else(|why| panic!("{command}: {why}"))
    }

    fn listens(&self) {
        let begin = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the broker does not listen");
            sleep(Duration::from_millis(20));
        }
    }

    /// Runs a block of the guide; what its server says of incidents.
    fn follow(&self, commands: &[(String, String)]) -> Vec<serde_json::Value> {
        let mut running = Vec::new();
        let mut server = None;
        for (place, (machine, command)) in commands.iter().enumerate() {
            let out = format!("{place}.out");
            let mut process = Running(self.start(machine, command, &out));
            let said = || fs::read_to_string(self.path(machine, &format!("{out}.err")));
            if command.starts_with("headwater certs") {
                assert!(process.ends_well(), "{:?}", said());
                // For this machine alone, and for tests that run as root.
                let settings = self.path(machine, "certs/broker/mosquitto.conf");
                let text = fs::read_to_string(&settings).expect("settings of the broker");
                let port = self.port;
                let here = format!("listener {port} 127.0.0.1\n");
                let text = text.replace(&format!("listener {port}\n"), &here);
                fs::write(&settings, format!("user root\n{text}")).expect("written");
                // What a person carries to the machine of the sites.
                for site in ["P1", "P2", "P3"].iter().filter(|_| machine == "control") {
                    let to = self.path("boiler", site);
                    fs::create_dir_all(&to).expect("a folder");
                    for file in ["ca.crt".to_owned(), format!("{site}.crt"), format!("{site}.key")]
                    {
                        let from = self.path(machine, &format!("certs/{site}/{file}"));
                        fs::copy(from, to.join(file)).expect("copied");
                    }
                }
                continue;
            }
            if command.starts_with("mosquitto") {
                self.listens();
            }
            if command.starts_with("headwater serve") {
                server = Some((machine, out, running.len()));
            }
            running.push(process);
        }
        let (machine, out, place) = server.expect("a block has a server");
        let read = |name: &str| fs::read_to_string(self.path(machine, name)).expect("a file");
        assert!(running[place].ends_well(), "{}", read(&format!("{out}.err")));
        // The first is the broker, which does not end by itself.
        for process in &mut running[1..] {
            assert!(process.ends_well());
        }
        incidents(&read(&out))
    }
}

/// The part of the day that is run in the tests that always run.
const TWO_HOURS: [&str; 2] = ["--until", "+2h"];

/// A folder with models, and what one process says of the day with these arguments.
fn alone(args: &[&str]) -> (tempfile::TempDir, Vec<serde_json::Value>) {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let output = crate::headwater()
        .env("HEADWATER_CACHE", cache.path())
        .args(["run", "plant-attack-day", "--json"])
        .args(args)
        .output()
        .expect("the program runs");
    let alone = incidents(&String::from_utf8(output.stdout).expect("text"));
    assert!(!alone.is_empty(), "something happens in the day");
    (cache, alone)
}

/// A service of the compose file.
#[derive(Default)]
struct Service {
    name: String,
    command: String,
    /// Which folder it sees as which.
    volumes: Vec<(String, String)>,
}

/// The services of the compose file.
fn services() -> Vec<Service> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/federation/compose.yaml");
    let text = fs::read_to_string(file).expect("the compose file");
    let (_, services) = text.split_once("\nservices:\n").expect("services");
    let (services, volumes) = services.split_once("\nvolumes:\n").expect("volumes");
    let known: Vec<&str> = volumes.lines().map(|line| line.trim().trim_end_matches(':')).collect();
    let mut found: Vec<Service> = Vec::new();
    for line in services.lines().filter(|line| !line.trim().is_empty()) {
        let deep = line.len() - line.trim_start().len();
        let (key, value) = line.trim().split_once(':').expect(line);
        match (deep, key) {
            (2, name) => found.push(Service { name: name.to_owned(), ..Service::default() }),
            (4, "command") => {
                value.trim().clone_into(&mut found.last_mut().expect(line).command);
            }
            (4, "volumes") => {
                let list = value.trim().trim_start_matches('[').trim_end_matches(']');
                let volume = |volume: &str| {
                    let volume = volume.trim().trim_matches('"').trim_end_matches(":ro");
                    let (from, to) = volume.split_once(':').expect(line);
                    assert!(from.starts_with("./") || known.contains(&from), "{from} is no volume");
                    (from.to_owned(), to.to_owned())
                };
                found.last_mut().expect(line).volumes = list.split(',').map(volume).collect();
            }
            (4, "image" | "restart" | "<<") => {}
            _ => panic!("{line}"),
        }
    }
    found
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn the_commands_of_the_compose_file_work_with_the_folders_that_it_gives_them() {
    let (cache, alone) = alone(&TWO_HOURS);
    let machines = Machines::new(cache.path());
    let certs =
        "headwater certs plant-attack-day certs --host 127.0.0.1 --installed /mosquitto/config";
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/federation/compose.yaml"),
    );
    let written = certs.replace("127.0.0.1", "broker");
    assert!(text.expect("the compose file").contains(&written), "{written}");
    assert!(Running(machines.start("here", certs, "certs.out")).ends_well());
    let mut running = Vec::new();
    let mut server = None;
    for Service { name, command, volumes } in services() {
        let mut command = command.replace("mqtts://broker", "mqtts://127.0.0.1");
        for (from, to) in &volumes {
            let Some(folder) = from.strip_prefix("./") else { continue };
            assert!(machines.path("here", folder).is_dir(), "{name}: {folder}");
            command = command.replace(&format!(" {to}"), &format!(" {folder}"));
            if name == "broker" {
                // Where the folder is seen in the container is where it lies here.
                let settings = machines.path("here", &format!("{folder}/mosquitto.conf"));
                let text = fs::read_to_string(&settings).expect("settings of the broker");
                let port = machines.port;
                let text = text.replace(&format!("{to}/"), &format!("{folder}/"));
                let here = format!("listener {port} 127.0.0.1\n");
                let text = text.replace(&format!("listener {port}\n"), &here);
                fs::write(&settings, format!("user root\n{text}")).expect("written");
            }
        }
        if command.starts_with("headwater serve") {
            command = format!("{} --until +2h", command.trim_end_matches(" --json"));
            server = Some(running.len());
        }
        running.push(Running(machines.start("here", &command, &name)));
        if name == "broker" {
            machines.listens();
        }
    }
    assert_eq!(running.len(), 5, "a broker, a server and three sites");
    let read = |name: &str| fs::read_to_string(machines.path("here", name)).expect("a file");
    assert!(running[server.expect("a server")].ends_well(), "{}", read("server.err"));
    for process in &mut running[2..] {
        assert!(process.ends_well());
    }
    assert_eq!(incidents(&read("server")), alone);
}

#[test]
#[cfg_attr(no_mosquitto, ignore = "needs mosquitto, which is absent")]
fn the_guide_works_as_written() {
    let (cache, alone) = alone(&TWO_HOURS);
    for number in [0, 1] {
        let commands = block(number);
        assert_eq!(commands.len(), 6, "{commands:?}");
        assert_eq!(Machines::new(cache.path()).follow(&commands), alone, "block {number}");
    }
}

/// `DAY_UNTIL` makes the day shorter, such as "+3h".
#[test]
#[ignore = "takes minutes: see the guide, across_machines, \"Long runs\""]
fn the_whole_attack_day_over_a_broker_says_what_one_process_says_in_both_modes() {
    let until = std::env::var("DAY_UNTIL").unwrap_or_else(|_| "+24h".to_owned());
    for mode in ["evidence", "paper"] {
        let (cache, alone) = alone(&["--mode", mode, "--until", &until]);
        let of_day = |(machine, command): (String, String)| {
            let takes_part = ["headwater site", "headwater serve"].map(|c| command.starts_with(c));
            let command = command.replace("--until +2h", &format!("--until {until}"));
            let mode =
                if takes_part.contains(&true) { format!(" --mode {mode}") } else { String::new() };
            (machine, command + &mode)
        };
        let commands: Vec<(String, String)> = block(0).into_iter().map(of_day).collect();
        assert_eq!(Machines::new(cache.path()).follow(&commands), alone, "{mode}");
        let opened = alone.iter().filter(|fact| fact["fact"] == "opened").count();
        println!("{mode}: {} facts about {opened} incidents equal, up to {until}", alone.len());
    }
}

//! The networks and filters, one definition each.
//!
//! candle defines and trains them; the kernels run them on flat buffers. It must not know where
//! measurements come from or what is decided with residuals.

pub mod augment;
pub mod checkpoint;
pub mod ekf;
pub mod forgetting;
pub mod frozen;
pub mod kernel;
pub mod network;
pub mod online;
pub mod oracle;
pub mod proprietary;
pub mod step;
pub mod train;
pub mod weights;

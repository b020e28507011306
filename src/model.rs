//! The networks and filters, one definition each.
//!
//! candle defines and trains them; the kernels run them on flat buffers. It must not know where
//! measurements come from or what is decided with residuals.

pub mod network;
pub mod oracle;
pub mod train;
pub mod weights;

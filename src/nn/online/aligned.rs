//! Blocks of lanes that begin where a register would.
//!
//! An allocator aligns to 16 bytes. Half of all blocks of 32 bytes would then lie in two lines of the
//! cache, which costs the optimiser's loop 4 %.

use std::ops::{Deref, DerefMut};

use super::{Block, LANES};

/// Blocks whose first number lies on a multiple of 32 bytes.
#[derive(Debug)]
pub(super) struct Aligned {
    /// The numbers, with room to shift them.
    store: Vec<f32>,
    from: usize,
    to: usize,
}

impl Aligned {
    pub(super) fn new(blocks: &[Block]) -> Self {
        let numbers = blocks.as_flattened();
        let mut store = vec![0.0; numbers.len() + LANES];
        // Of no account for results: where it is not known, nothing is shifted.
        let from = store.as_ptr().align_offset(size_of::<Block>()).min(LANES);
        let to = from + numbers.len();
        store[from..to].copy_from_slice(numbers);
        Self { store, from, to }
    }
}

/// A copy lies elsewhere and is shifted anew.
impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::new(self)
    }
}

impl Deref for Aligned {
    type Target = [Block];

    #[inline(always)]
    fn deref(&self) -> &[Block] {
        self.store[self.from..self.to].as_chunks().0
    }
}

impl DerefMut for Aligned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Block] {
        self.store[self.from..self.to].as_chunks_mut().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_as_they_went_in_and_copies_are_equal_and_aligned() {
        for count in [0_usize, 1, 7, 1000] {
            let blocks: Vec<Block> = (0..count).map(|i| [i as f32; LANES]).collect();
            let mut aligned = Aligned::new(&blocks);
            assert_eq!(*aligned, *blocks);
            let copy = aligned.clone();
            assert_eq!(*copy, *blocks);
            for blocks in [&aligned, &copy] {
                assert_eq!(blocks.as_ptr().addr() % size_of::<Block>(), 0);
            }
            if let Some(last) = aligned.last_mut() {
                last[0] = -1.0;
                assert_ne!(*aligned, *copy);
            }
        }
    }
}

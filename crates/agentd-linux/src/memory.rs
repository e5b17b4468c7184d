//! What the allocator keeps of memory that nobody uses any more: mallopt(3) and malloc_trim(3) of glibc. Elsewhere these
//! do nothing.

/// Bytes from which an allocation is a mapping of its own, which goes back to the kernel when it is freed: glibc's
/// first default, which it would raise at the first such free.
#[cfg(target_env = "gnu")]
const OWN_MAPPING: libc::c_int = 128 << 10;

/// Has all threads share one arena, and large buffers go back to the kernel at once. An arena for each thread keeps pages
/// of its own for a few allocations. For the start of a program, while there is one thread.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, OWN_MAPPING)] {
        // SAFETY: the call takes two numbers.
        let set = unsafe { libc::mallopt(parameter, value) };
        debug_assert_eq!(set, 1, "the parameter is one of glibc's");
    }
}

/// Gives pages that hold nothing back to the kernel. It looks at all of the heap: for the end of large work.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number and touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(test)]
mod tests {
    /// Of a range of memory, the bytes that the kernel holds pages for.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    #[test]
    fn memory_that_was_used_goes_back() {
        // Small pieces, so that none is a mapping of its own; the last one stays and holds the heap's end.
        let mut pieces: Vec<Vec<u8>> = (0..16_384).map(|_| vec![1; 4096]).collect();
        let full = resident();
        let last = pieces.pop();
        drop(pieces);
        super::trim();
        let left = resident();
        assert!(left + (32 << 20) < full, "{left} bytes of {full} are left");
        drop(last);
    }
}

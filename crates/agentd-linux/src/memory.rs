//! What stays in memory that nobody uses any more: in the allocator, mallopt(3) and malloc_trim(3) of glibc (elsewhere
//! these do nothing), and of the program's own file.

use std::ffi::{c_int, c_void};

/// Bytes from which an allocation is a mapping of its own, which goes back to the kernel when it is freed: glibc's
/// first default, which it would raise at the first such free.
#[cfg(target_env = "gnu")]
const OWN_MAPPING: libc::c_int = 128 << 10;

/// Has all threads share one arena, and large buffers go back to the kernel at once. An arena for each thread keeps pages
/// of its own for a few allocations: with two, a thousand services take 3 MB more. For the start of a program, while there
/// is one thread.
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

/// Unmaps the pages of the program's own file that are only read. The kernel maps what lies around each page that is
/// used, and so nearly all of a small program, most of which only its start needs; what is needed again is mapped
/// again from the page cache. madvise(2) `MADV_DONTNEED`.
pub fn let_file_go() {
    // SAFETY: the callback has the type that the call wants, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(let_segments_go), std::ptr::null_mut()) };
}

/// The callback of dl_iterate_phdr(3); it ends after the first object, which is the program.
unsafe extern "C" fn let_segments_go(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut c_void,
) -> c_int {
    // SAFETY: the caller hands over a valid object for the time of the call.
    let info = unsafe { &*info };
    if info.dlpi_phdr.is_null() {
        return 1;
    }
    // SAFETY: the program headers are mapped for as long as the program runs, and there are `dlpi_phnum`.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    const PAGE: u64 = 4096;
    for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0) {
        let start = (info.dlpi_addr + header.p_vaddr) & !(PAGE - 1);
        let end = info.dlpi_addr + header.p_vaddr + header.p_memsz;
        let length = usize::try_from(end.next_multiple_of(PAGE) - start).unwrap_or(0);
        // SAFETY: the range is a segment of the file that is never written, so each page reads as before when it is
        // mapped again. A kernel with larger pages refuses a range that does not begin with one, and nothing is lost.
        unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_DONTNEED) };
    }
    1
}

#[cfg(test)]
mod tests {
    /// The bytes of mapped files that the kernel holds pages for, proc_pid_status(5).
    fn resident_of_files() -> usize {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    #[test]
    fn pages_of_the_file_go_and_come_back() {
        // Another test may map some of them again meanwhile: once is enough.
        let less = |_| {
            let before = resident_of_files();
            super::let_file_go();
            resident_of_files() < before
        };
        assert!((0..10).any(less), "{} bytes stay mapped", resident_of_files());
    }

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

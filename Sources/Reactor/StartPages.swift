import CLinux

/// The pages of code and constants that the start brought into memory.
public enum StartPages {
    /// Returns all these pages to the kernel, because most are never used again. The kernel reads the others again from
    /// the page cache, within microseconds. Saves a third of an idle process's memory. Safe on any thread; madvise(2).
    public static func release() { heimdallr_release_code() }
}

import CLinux

/// The pages of code and constants that the process touched while it started.
public enum StartPages {
    /// Lets the kernel have them back. Most are never touched again; the others come back from the page cache when they
    /// are, some microseconds each. Takes a third off the memory of an idle process. Any thread; madvise(2).
    public static func release() { heimdallr_release_code() }
}

import CLinux

/// The pages of code and constants that were used only at the start.
public enum StartPages {
    /// Returns them to the kernel. Most are never used again; the others come back from the page cache within
    /// microseconds. Saves a third of an idle process's memory. Any thread; madvise(2).
    public static func release() { heimdallr_release_code() }
}

import CLinux

/// Settings of the allocator for freed buffers.
public enum FreedMemory {
    /// Keeps up to 2 MiB of freed memory in each arena. By default, the allocator returns more than 128 KiB at the end
    /// of an arena to the kernel at once. The next bodies then cause page faults, which cost about 7 % of an upload's
    /// CPU time. Applies to the whole process; mallopt(3).
    public static func keep() {
        mallopt(heimdallr_trim_threshold, 2 << 20)
        mallopt(heimdallr_mmap_threshold, 1 << 20)
    }
}

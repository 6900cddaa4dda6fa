import CLinux

/// Settings of the allocator for freed buffers.
public enum FreedMemory {
    /// Keeps up to 2 MiB of freed memory in each arena, and puts blocks below 1 MiB into arenas. By default, both
    /// limits begin at 128 KiB, and the allocator returns freed memory beyond them to the kernel at once. The next
    /// bodies then cause page faults, which cost about 7 % of an upload's CPU time. Applies to the whole process;
    /// mallopt(3).
    public static func keep() {
        mallopt(heimdallr_trim_threshold, 2 << 20)
        mallopt(heimdallr_mmap_threshold, 1 << 20)
    }
}

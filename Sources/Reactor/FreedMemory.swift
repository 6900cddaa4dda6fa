import CLinux

/// What the allocator does with the memory of buffers that are no longer wanted.
public enum FreedMemory {
    /// Bodies in transit take and leave buffers all the time. By default the allocator gives more than 128 KiB at an
    /// arena's end back to the kernel at once, and each wave of bodies has it faulted in again: some 7 % of an upload's
    /// CPU time. From here on up to 2 MiB an arena may stay. For the whole process; mallopt(3).
    public static func keep() {
        mallopt(heimdallr_trim_threshold, 2 << 20)
        mallopt(heimdallr_mmap_threshold, 1 << 20)
    }
}

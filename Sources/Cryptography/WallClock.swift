import CLinux
import Glibc
import WireText

/// The clock for times that outlive the process, such as records on disk and HTTP dates. Never for deadlines.
public enum WallClock {
    /// Whole seconds since 1970-01-01T00:00:00Z.
    public static func now() -> Int64 { seconds(CLOCK_REALTIME) }

    /// Whether the kernel knows that this clock is synchronized. adjtimex(2).
    public static func isSynchronized() -> Bool { heimdallr_clock_is_synchronized() != 0 }
}

/// The time since the machine's start, including suspension. This clock can't be set.
public enum BootClock {
    /// Whole seconds. CLOCK_BOOTTIME of clock_gettime(2).
    public static func now() -> Int64 { seconds(CLOCK_BOOTTIME) }

    /// Identifier of the machine's current boot, 36 characters; `nil` when the system does not provide it. random(4).
    public static func identifier() -> [UInt8]? {
        guard let text = try? SecretFile.read(path: "/proc/sys/kernel/random/boot_id", limit: 128), text.count == 36
        else { return nil }
        return text.withSpan { [UInt8](copying: $0) }
    }
}

private func seconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec)
}

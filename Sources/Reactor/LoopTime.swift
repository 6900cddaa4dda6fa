import CLinux
import Glibc

/// A moment on the loop's clock: nanoseconds of `CLOCK_BOOTTIME`, which never jumps and counts suspension.
public struct LoopTime: Sendable, Comparable, Hashable {
    public var nanoseconds: UInt64

    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// Reads the clock (clock_gettime(2)). On a loop, `EventLoop.now` is cheaper.
    public static func current() -> LoopTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return LoopTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    public static func < (left: LoopTime, right: LoopTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Saturates at the latest time.
    public static func + (time: LoopTime, duration: Duration) -> LoopTime {
        time.advanced(by: UInt64(max(0, duration.wholeNanoseconds)))
    }

    /// Saturates at the latest time.
    public func advanced(by nanoseconds: UInt64) -> LoopTime {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return LoopTime(nanoseconds: overflow ? .max : sum)
    }

    /// Time from `earlier` to this moment; zero when this one is earlier.
    public func since(_ earlier: LoopTime) -> Duration {
        nanoseconds > earlier.nanoseconds ? .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds)) : .zero
    }
}

extension Duration {
    /// Nanoseconds, saturating at the limits of 64 bits.
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowed) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || overflowed ? (seconds < 0 ? .min : .max) : sum
    }

    /// Milliseconds, rounded up, saturating at 2^31 - 1, for interfaces that take milliseconds.
    public var wholeMilliseconds: Int {
        let nanoseconds = wholeNanoseconds
        return nanoseconds <= 0 ? 0 : min(Int(Int32.max), Int(nanoseconds - 1) / 1_000_000 + 1)
    }
}

/// A value that belongs to one event loop, in a wrapper that may travel.
///
/// What runs elsewhere (a token fetch, a signal handler) holds it to hand it back to the loop:
/// `loop.execute { bound.value.finish() }`. Touching `value` on any other thread is a programming error and traps.
/// The value is freed on the loop's thread, or after its end, on whichever thread the last copy goes away.
public struct LoopBound<Value>: @unchecked Sendable {
    // @unchecked: every access is checked to be on the loop's own thread.
    private let holder: Holder<Value>
    public var loop: EventLoop { holder.loop }

    public init(_ value: Value, on loop: EventLoop) {
        loop.preconditionOnLoop()
        holder = Holder(value, on: loop)
    }

    public var value: Value {
        loop.preconditionOnLoop()
        return holder.value
    }
}

/// Freed anywhere; what it holds is not.
private final class Holder<Value> {
    private final class Box {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    let loop: EventLoop
    private let object: HeldObject

    init(_ value: Value, on loop: EventLoop) {
        self.loop = loop
        object = HeldObject(Box(value))
    }

    deinit { loop.release(object) }

    var value: Value { object.with(Box.self).value }
}

/// An object kept alive by hand, so that it can be let go of at a chosen place: exactly once, by `release`.
@safe struct HeldObject: @unchecked Sendable {
    // @unchecked: the object is touched on its loop's thread only.
    private let reference: Unmanaged<AnyObject>

    init(_ object: AnyObject) { unsafe reference = Unmanaged.passRetained(object) }

    func with<Object: AnyObject>(_ type: Object.Type) -> Object {
        unsafe unsafeDowncast(reference.takeUnretainedValue(), to: type)
    }

    func release() { unsafe reference.release() }
}

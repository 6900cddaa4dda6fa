/// A value of one event loop, in a wrapper that may be sent to other threads.
///
/// Code on other threads (a token fetch, a signal handler) keeps the wrapper to use the value on the loop:
/// `loop.execute { bound.value.finish() }`. Reading `value` on another thread is a programming error and traps. The
/// value is freed on the loop's thread; after the loop's end, on the thread that releases the last copy.
public struct LoopBound<Value>: @unchecked Sendable {
    // @unchecked: each access checks that it runs on the loop's thread.
    private let reference: Reference<Value>
    public var loop: EventLoop { reference.loop }

    public init(_ value: Value, on loop: EventLoop) {
        loop.preconditionOnLoop()
        reference = Reference(value, on: loop)
    }

    public var value: Value {
        loop.preconditionOnLoop()
        return reference.value
    }
}

/// A reference that may be freed on any thread. Its `deinit` frees the value on the loop's thread.
private final class Reference<Value> {
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

/// A strong reference to an object, released by hand with exactly one call of `release`.
@safe struct HeldObject: @unchecked Sendable {
    // @unchecked: only the loop's thread touches the object.
    private let reference: Unmanaged<AnyObject>

    init(_ object: AnyObject) { unsafe reference = Unmanaged.passRetained(object) }

    func with<Object: AnyObject>(_ type: Object.Type) -> Object {
        unsafe unsafeDowncast(reference.takeUnretainedValue(), to: type)
    }

    func release() { unsafe reference.release() }
}

import Foundation

/// A test helper that could not do its work, in words.
public struct TestFailure: Error, CustomStringConvertible, Sendable {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// Runs blocking work on a thread of its own, so that a test that waits for a socket never starves the
/// cooperative pool that the code under test runs on.
public func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
}

/// Waits until `condition` holds, looking every few milliseconds.
/// - Throws: `TestFailure` naming `what` when `limit` has passed.
public func eventually(
    _ what: String, within limit: Duration = .seconds(20), _ condition: @Sendable () throws -> Bool
) async throws {
    _ = try await eventually(what, within: limit) { try condition() ? () : nil }
}

/// Waits until `value` is there, looking every few milliseconds.
/// - Throws: `TestFailure` naming `what` when `limit` has passed.
public func eventually<Value>(
    _ what: String, within limit: Duration = .seconds(20), _ value: @Sendable () throws -> Value?
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    while true {
        if let value = try value() { return value }
        guard ContinuousClock.now < deadline else { throw TestFailure("not within \(limit): \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

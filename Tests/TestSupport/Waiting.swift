import Foundation

/// The reason why a test helper failed, in words.
public struct TestFailure: Error, CustomStringConvertible, Sendable {
    public var description: String
    public init(_ description: String) { self.description = description }
}

/// Runs blocking work on a new thread. A test that waits for a socket then never blocks the cooperative pool, on which
/// the code under test runs.
public func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
}

/// Waits until `condition` holds, and checks every few milliseconds.
/// - Throws: `TestFailure` naming `what` when `limit` has passed.
public func eventually(
    _ what: String, within limit: Duration = .seconds(20), _ condition: @Sendable () async throws -> Bool
) async throws {
    _ = try await eventually(what, within: limit) { try await condition() ? () : nil }
}

/// Waits until `value` is not `nil`, and checks every few milliseconds.
/// - Throws: `TestFailure` naming `what` when `limit` has passed.
public func eventually<Value>(
    _ what: String, within limit: Duration = .seconds(20), _ value: @Sendable () async throws -> Value?
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    while true {
        if let value = try await value() { return value }
        guard ContinuousClock.now < deadline else { throw TestFailure("not within \(limit): \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

/// Waits until `value` stays the same for `time`.
/// - Returns: that value.
/// - Throws: `TestFailure` naming `what` when the value still changes after `limit`.
public func settled<Value: Equatable & Sendable>(
    _ what: String, for time: Duration = .milliseconds(100), within limit: Duration = .seconds(20),
    _ value: @Sendable () async throws -> Value
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    var last = try await value()
    var since = ContinuousClock.now
    while ContinuousClock.now - since < time {
        guard ContinuousClock.now < deadline else { throw TestFailure("not within \(limit): \(what)") }
        try await Task.sleep(for: .milliseconds(5))
        let next = try await value()
        if next != last { (last, since) = (next, .now) }
    }
    return last
}

/// Checks that `condition` holds for all of `time`. Only time can show that something does not happen.
/// - Throws: `TestFailure` naming `what` as soon as the condition fails.
public func holds(
    _ what: String, for time: Duration = .milliseconds(100), _ condition: @Sendable () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + time
    repeat {
        guard try await condition() else { throw TestFailure("no longer: \(what)") }
        try await Task.sleep(for: .milliseconds(5))
    } while ContinuousClock.now < end
}

/// Returns when its task is cancelled.
public func untilCancelled() async {
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
}

/// Measures up to three times, until a result is below `limit`: a busy machine may be too slow once, not each time.
/// - Returns: the shortest time.
public func shortest(
    under limit: Duration, _ measure: () async throws -> Duration
) async throws -> Duration {
    var shortest = try await measure()
    for _ in 0..<2 where shortest >= limit { shortest = min(shortest, try await measure()) }
    return shortest
}

/// Measures the time until `condition` holds.
/// - Throws: `TestFailure` naming `what` after 20 seconds.
public func time(
    until what: String, _ condition: @Sendable () async throws -> Bool
) async throws -> Duration {
    let start = ContinuousClock.now
    try await eventually(what, condition)
    return .now - start
}

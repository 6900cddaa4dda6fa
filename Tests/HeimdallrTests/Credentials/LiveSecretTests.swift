import FileSystem
import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite("a secret that changes while the process runs", .timeLimit(.minutes(1)))
struct LiveSecretTests {
    /// The result of the next read.
    private final class Source: Sendable {
        let next: Mutex<Result<String, SecretProviderError>>
        let readings = Atomic(0)
        let outcomes = Mutex<[LiveSecret.Outcome]>([])

        init(_ text: String?) { next = Mutex(Self.result(text)) }

        func set(_ text: String?) { next.withLock { $0 = Self.result(text) } }

        private static func result(_ text: String?) -> Result<String, SecretProviderError> {
            text.map { .success($0) } ?? .failure(SecretProviderError("away"))
        }

        func secret(_ kind: LiveSecret.Schedule) -> LiveSecret {
            LiveSecret(
                kind,
                read: { [self] in
                    readings.add(1, ordering: .relaxed)
                    return Secret(try next.withLock { try $0.get() })
                }, onOutcome: { [self] outcome in outcomes.withLock { $0.append(outcome) } })
        }
    }

    @Test func `a secret's file is read for each use, and its last good content stays`() async throws {
        let source = Source("one")
        let secret = source.secret(.eachTime)
        #expect(secret.current() == nil)
        #expect(try await secret.secret().revealed == "one")
        source.set("two")
        #expect(try await secret.secret().revealed == "two")
        source.set(nil)
        #expect(try await secret.secret().revealed == "two")
        #expect(try await secret.secret().revealed == "two")
        #expect(secret.fault == SecretProviderError("away"))
        source.set("two")
        #expect(try await secret.secret().revealed == "two")
        #expect(secret.fault == nil)
        #expect(
            source.outcomes.withLock { $0 } == [
                .taken(isRecovery: false), .taken(isRecovery: false),
                .failed(SecretProviderError("away"), hasValue: true, isNew: true),
                .failed(SecretProviderError("away"), hasValue: true, isNew: false), .taken(isRecovery: true),
            ])
        #expect(secret.generation == 2)
    }

    @Test func `a secret that never was good says why`() async {
        let secret = Source(nil).secret(.eachTime)
        await #expect(throws: SecretProviderError("away")) { try await secret.secret() }
        #expect(secret.current() == nil)
    }

    @Test func `a command's secret is read in the background, not for each use`() async throws {
        let source = Source("one")
        let secret = source.secret(.every(.milliseconds(300)))
        #expect(try await secret.secret().revealed == "one")
        #expect(try await secret.secret().revealed == "one")
        #expect(source.readings.load(ordering: .relaxed) == 1)
        source.set("two")
        _ = try await eventually("the next one") { secret.current()?.revealed == "two" ? true : nil }
        source.set(nil)
        _ = try await eventually("a failure") { secret.fault }
        #expect(secret.current()?.revealed == "two")
        #expect(try await secret.secret().revealed == "two")
    }

    @Test func `a secret that can't be had is asked for by the timer, not by its callers`() async throws {
        let source = Source(nil)
        let secret = source.secret(.every(.seconds(3600)))
        for _ in 0..<20 { await #expect(throws: SecretProviderError("away")) { try await secret.secret() } }
        #expect(source.readings.load(ordering: .relaxed) == 1)
        source.set("there")
        _ = try await eventually("the timer's turn, long before the hour") { secret.current() }
    }

    @Test func `a released secret ends its readings`() async throws {
        let source = Source("one")
        var secret: LiveSecret? = source.secret(.every(.milliseconds(20)))
        _ = try await secret?.secret()
        weak let gone = secret
        secret = nil
        _ = try await eventually("its end") { gone == nil ? true : nil }
    }

    @Test func `one reading of a secret serves all callers who come meanwhile`() async throws {
        let count = Atomic(0)
        let asked = Recorder<Int>()
        let secret = LiveSecret(.every(.seconds(3600))) {
            count.add(1, ordering: .relaxed)
            try await eventually("all have asked") { asked.all.count == 20 }
            return Secret("x")
        }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask {
                    asked.append(number)
                    _ = try? await secret.secret()
                }
            }
        }
        #expect(count.load(ordering: .relaxed) == 1)
    }
}

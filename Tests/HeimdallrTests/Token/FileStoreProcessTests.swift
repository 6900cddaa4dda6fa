import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

/// Real processes on one directory, with a server that rotates refresh tokens and kills the chain when a spent one
/// comes again, as RFC 9700 section 4.14.2 wants it.
@Suite struct `Processes with one file store` {
    @Test("several processes on one directory never spend one refresh token twice, and take over what others got")
    func contention() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try RotatingEndpoint(life: 10)
        let clients = ["one", "two", "three"]
        var processes: [ChildProcess] = []
        for client in clients {
            for _ in 0..<3 { processes.append(try folder.start(client, endpoint, seconds: 8)) }
        }
        for process in processes {
            #expect(try await process.ended(within: .seconds(60)) == .exited(0))
            #expect(process.output.hasSuffix("end \n"), "no fault of the store at the end: \(process.output)")
            #expect(!process.output.contains("none "), "\(process.output)")
        }
        #expect(endpoint.reuses == 0)
        for client in clients {
            let chain = endpoint.chain(client)
            #expect(chain.grants == 1, "one first token, whichever process was first")
            #expect(chain.rotations >= 5)
            // The store has the last one.
            let stored = try await folder.sharedStore.load(
                client: folder.record(client, endpoint))
            #expect(stored?.refreshToken == chain.current.map { Secret($0) })
        }
        // The lock went round: no process had a client to itself.
        for client in clients { #expect(endpoint.chain(client).processes.count >= 2, "\(client)") }
        // A process used another one's token without a request.
        let used = processes.map { Set($0.output.split(separator: "\n").filter { $0.hasPrefix("used ") }) }
        let shared = (0..<used.count).contains { one in
            (0..<one).contains { !used[one].isDisjoint(with: used[$0]) }
        }
        #expect(shared)
    }

    @Test("kill -9 around rotations, 80 times: no record is half-written, and none that was in use is lost")
    func kills() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try RotatingEndpoint(life: 1)
        let outcomes = try await withThrowingTaskGroup(of: KillTally.self) { group in
            for lane in 0..<4 { group.addTask { try await Self.killAgainAndAgain("lane\(lane)", folder, endpoint) } }
            var total = KillTally()
            for try await tally in group { total.add(tally) }
            return total
        }
        print("kills: \(outcomes)")
        #expect(outcomes.kills >= 80)
        // The kills were where it hurts: many after a rotation was durable, and some before.
        #expect(outcomes.kept >= 8)
        // All processes recover without a person, and only named files remain.
        for lane in 0..<4 {
            let process = try folder.start("lane\(lane)", endpoint, seconds: 1)
            try await process.ended(within: .seconds(60))
            #expect(process.output.contains("used "), "\(process.transcript)")
            #expect(process.output.hasSuffix("end \n"), "\(process.transcript)")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.directory)
        #expect(names.allSatisfy { $0.hasSuffix(".token") || $0.hasSuffix(".lock") }, "\(names)")
    }

    private struct KillTally: Sendable, CustomStringConvertible {
        var kills = 0
        /// The rotation was durable already.
        var kept = 0
        /// The kill came between the server's rotation and the end of the write.
        var lost = 0

        mutating func add(_ other: KillTally) {
            kills += other.kills
            kept += other.kept
            lost += other.lost
        }

        var description: String { "\(kills), after \(kept) the new refresh token was stored, after \(lost) not yet" }
    }

    /// Starts a process, kills it around its first rotation, and checks the record; many times.
    private static func killAgainAndAgain(
        _ client: String, _ folder: FileStoreFolder, _ endpoint: RotatingEndpoint
    ) async throws -> KillTally {
        var tally = KillTally()
        let store = folder.sharedStore
        // A record to begin with: from here on there always is one.
        let first = try folder.start(client, endpoint, seconds: 0.1)
        try await first.ended(within: .seconds(60))
        while tally.kills < 20 {
            let before = try #require(
                try await store.load(client: folder.record(client, endpoint)),
                "\(client) has a record")
            let process = try folder.start(client, endpoint)
            let answered = endpoint.nextAnswer(client)
            // Time itself: some before the answer, most while it is stored, some after.
            let delay = Duration.microseconds(Int.random(in: 0...9000))
            try await offPool {
                // The write of an answer takes a few milliseconds.
                answered.wait()
                usleep(UInt32(delay / .microseconds(1)))
                process.signal(SIGKILL)
            }
            let ending = try await process.ended(within: .seconds(60))
            #expect(ending == .signalled(SIGKILL), "\(process.transcript)")
            tally.kills += 1

            // Always readable.
            let after = try #require(
                try await store.load(client: folder.record(client, endpoint)),
                "the record is gone")
            #expect(after.revision >= before.revision)
            let chain = endpoint.chain(client)
            let stored = after.refreshToken.map(\.revealed)
            if stored == chain.current {
                tally.kept += 1
            } else {
                // Then it is what was there before this process, or what this process was told last but one.
                #expect(
                    after.refreshToken == before.refreshToken || stored == chain.last || stored == nil,
                    "neither the last durable one nor the one before")
                tally.lost += 1
            }
            // Each token was durable before its first use.
            if let used = process.output.split(separator: "\n").last(where: { $0.hasPrefix("used ") }) {
                let number = Int(used.split(separator: "-").last ?? "") ?? .max
                let kept = stored.flatMap { Int($0.split(separator: "-").last ?? "") } ?? -1
                #expect(kept >= number, "\(used) was in use, and the store has \(stored ?? "none")")
            }
        }
        return tally
    }
}

extension FileStoreFolder {
    /// The store as the processes have it.
    fileprivate var sharedStore: OAuthAccessTokenFileStore {
        OAuthAccessTokenFileStore(directory: directory, key: key)
    }

    /// The name of the client's record in the processes that `start` starts.
    fileprivate func record(_ client: String, _ endpoint: RotatingEndpoint) -> String {
        recordName("\(endpoint.url)/\(client)", name: client, id: "contender")
    }

    /// A process that uses the store.
    fileprivate func start(_ client: String, _ endpoint: RotatingEndpoint, seconds: Double? = nil) throws
        -> ChildProcess
    {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("StoreContender")
        return try ChildProcess(
            [program.path, directory, keyFile, "\(endpoint.url)/\(client)", client] + (seconds.map { ["\($0)"] } ?? []))
    }
}

/// Rotates refresh tokens, one chain for each client (the last part of the URL). A spent one kills the chain.
private final class RotatingEndpoint: Sendable {
    struct Chain: Sendable {
        /// `nil`: dead, or not begun.
        var current: String?
        /// The one before.
        var last: String?
        var number = 0
        var grants = 0
        var rotations = 0
        var processes: Set<String> = []
        var answers: [DispatchSemaphore] = []
    }

    private struct State {
        var chains: [String: Chain] = [:]
        var reuses = 0
    }

    var url: String { endpoint.url }
    var reuses: Int { state.withLock { $0.reuses } }

    private let endpoint: TokenEndpoint
    private let state: Shared

    private final class Shared: Sendable {
        private let value = Mutex(State())
        func withLock<Result>(_ body: (inout sending State) -> sending Result) -> sending Result {
            value.withLock(body)
        }
    }

    init(life: Int) throws {
        let state = Shared()
        self.state = state
        endpoint = try TokenEndpoint { request, _ in Self.answer(request, state, life: life) }
    }

    func chain(_ client: String) -> Chain { state.withLock { $0.chains[client] ?? Chain() } }

    /// Signalled when the next answer with a token is about to go out.
    func nextAnswer(_ client: String) -> DispatchSemaphore {
        let semaphore = DispatchSemaphore(value: 0)
        state.withLock { $0.chains[client, default: Chain()].answers.append(semaphore) }
        return semaphore
    }

    private static func answer(_ request: TokenEndpointRequest, _ state: Shared, life: Int) -> TokenEndpointAnswer {
        let client = request.target.split(separator: "/").last.map(String.init) ?? ""
        return state.withLock { state in
            var chain = state.chains[client] ?? Chain()
            defer { state.chains[client] = chain }
            if request["grant_type"] == "refresh_token" {
                guard let spent = request["refresh_token"], spent == chain.current else {
                    if chain.current != nil { state.reuses += 1 }
                    chain.last = chain.current
                    chain.current = nil
                    return .error("invalid_grant")
                }
                chain.rotations += 1
            } else {
                chain.grants += 1
            }
            if let process = request.field("X-Process") { chain.processes.insert(process) }
            chain.number += 1
            chain.last = chain.current
            chain.current = "R-\(client)-\(chain.number)"
            for answer in chain.answers { answer.signal() }
            chain.answers = []
            return .token("T-\(client)-\(chain.number)", expiresIn: "\(life)", refreshToken: chain.current)
        }
    }
}

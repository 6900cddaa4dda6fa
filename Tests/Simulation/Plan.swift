/// Parameters and events of a run. Follows from its seed; the list of events can be shortened.
struct Plan: Sendable {
    /// How a client gets its first token.
    enum Kind: Sendable {
        case password, browser, device
        case credentials
        /// Each caller brings a token.
        case exchange

        var wantsPerson: Bool { [.password, .browser, .device].contains(self) }
    }

    enum Event: Sendable, CustomStringConvertible {
        case signIn(replica: Int, client: Int)
        /// `revokes`: the server is told.
        case signOut(replica: Int, client: Int, revokes: Bool)
        case refresh(replica: Int, client: Int)
        /// A resource answers 401.
        case refuse(replica: Int, client: Int, for: Int)
        /// Callers wait, and go before there is an outcome.
        case leave(replica: Int, client: Int)
        /// `changes`: the client's `timeout` is another one.
        case reload(replica: Int, changes: Bool)
        case restart(replica: Int)
        case kill(replica: Int, milliseconds: Int)
        case stop(replica: Int, milliseconds: Int)
        case dropConnections(replica: Int)
        case resets(replica: Int, milliseconds: Int)
        case cutOff(replica: Int, milliseconds: Int)
        case crash(milliseconds: Int)
        case slow(milliseconds: Int)
        /// The database refuses or holds up the statements of all.
        case outage(Outages.Kind, milliseconds: Int)
        /// The database holds up the statements of one replica, and carries them out after they were given up.
        case holdUp(replica: Int, milliseconds: Int)
        /// Another server takes over, without the commits of the last `lag` milliseconds.
        case forget(lag: Int, milliseconds: Int)
        /// The same, and the former one accepts writes for a while.
        case split(lag: Int, milliseconds: Int)
        /// Nothing can be written to a file.
        case fullDisk(milliseconds: Int)
        case loseAnswers(Int)
        case delayAnswers(milliseconds: Int, for: Int)
        case refuseRequests(for: Int)
        case setWallClock(replica: Int, seconds: Int)
        /// This replica is restarted or reloads, with another token endpoint, or the first one again.
        case rollOut(replica: Int, authority: Int, reloads: Bool)
        /// `store move`. `running`: a proxy that is not stopped before it.
        case move(running: Int?, killedAfter: Int?)

        var description: String {
            switch self {
            case .signIn(let replica, let client): "somebody signs in to c\(client) at r\(replica)"
            case .signOut(let replica, let client, let revokes):
                "somebody signs out of c\(client) at r\(replica)\(revokes ? ", and the server is told" : "")"
            case .refresh(let replica, let client): "refreshNow of c\(client) at r\(replica)"
            case .refuse(let replica, let client, let span):
                "a resource refuses the tokens of c\(client) at r\(replica) for \(span) ms"
            case .leave(let replica, let client): "callers of c\(client) at r\(replica) come and leave"
            case .reload(let replica, let changes):
                "r\(replica) reloads, \(changes ? "with another timeout" : "the same")"
            case .restart(let replica): "r\(replica) is restarted in good order"
            case .kill(let replica, let time): "r\(replica) is killed, and started after \(time) ms"
            case .stop(let replica, let time): "r\(replica) is stopped for \(time) ms"
            case .dropConnections(let replica): "the database ends the connections of r\(replica)"
            case .resets(let replica, let time): "r\(replica) gets resets from the database for \(time) ms"
            case .cutOff(let replica, let time): "r\(replica) is cut off from the database for \(time) ms"
            case .crash(let time): "the database is killed, and back after \(time) ms"
            case .slow(let time): "the database or the disk is slow for \(time) ms"
            case .outage(.readOnly, let time): "the database is read-only for \(time) ms"
            case .outage(.locked, let time): "the table is locked for \(time) ms"
            case .outage(.commits, let time): "commits hang for \(time) ms"
            case .holdUp(let replica, let time): "the statements of r\(replica) run late for \(time) ms"
            case .forget(let lag, let time):
                "the database is away for \(time) ms, and forgets the commits of the last \(lag) ms"
            case .split(let lag, let time): "two servers write for \(time) ms, one without the last \(lag) ms"
            case .fullDisk(let time): "the disk is full for \(time) ms"
            case .loseAnswers(let count): "the next \(count) answers of the token endpoint are lost"
            case .delayAnswers(let time, let span): "for \(span) ms answers take up to \(time) ms"
            case .refuseRequests(let span): "for \(span) ms the token endpoint answers 5xx, 429, nonsense or nothing"
            case .setWallClock(let replica, let seconds): "the wall clock of r\(replica) jumps by \(seconds) s"
            case .rollOut(let replica, let authority, let reloads):
                "r\(replica) \(reloads ? "reloads" : "is restarted") with token endpoint \(authority)"
            case .move(let running, let life):
                "the records are moved to the other store\(running.map { ", and r\($0) runs" } ?? "")"
                    + (life.map { "; the command is killed after \($0) ms" } ?? "")
            }
        }
    }

    var seed: UInt64
    var replicas: Int
    var kinds: [Kind]
    var tokenLife: Int
    var timeout: Duration
    /// For how long the authorization server gives the same answer again.
    var grace: Duration
    /// The replicas are processes of one machine, with one directory of files.
    var usesFiles: Bool
    /// Connections break between any two steps.
    var breaks: Bool
    /// Processes stop at the worst moment.
    var stops: Bool
    /// Outages of the database begin at the worst moment: a refresh token is used, and its successor not saved.
    var strikes: Bool
    var events: [(at: Int, event: Event)] = []

    var clients: Int { kinds.count }

    /// The span in which faults happen, in milliseconds.
    static let span = 60_000

    /// As the proxy sets it.
    var leaseTime: Duration { max(.seconds(30), timeout * 2 + .seconds(10)) }

    /// - Parameter only: words of which an event's description has to hold one; empty: any event.
    init(seed: UInt64, only: [String] = []) {
        var chance = Chance(seed ^ 0x5EED)
        self.seed = seed
        replicas = chance.within(1...5)
        let clients = chance.once(in: 8) ? chance.within(5...20) : chance.within(1...3)
        let choice: [Kind] = [.password, .password, .browser, .browser, .device, .credentials, .exchange]
        kinds = (0..<clients).map { _ in choice[chance.below(choice.count)] }
        tokenLife = chance.within(3...12)
        timeout = .seconds([5, 10, 10, 40][chance.below(4)])
        grace = chance.once(in: 3) ? .seconds(30) : .zero
        usesFiles = chance.once(in: 5)
        breaks = chance.once(in: 3)
        stops = chance.once(in: 6)
        strikes = chance.once(in: 3)
        // A run with few kinds of faults tells more than one with all.
        let faults = (0..<Self.kindsOfEvents).filter { _ in chance.once(in: 3) }
        for _ in 0..<chance.within(2...24) {
            guard !faults.isEmpty else { break }
            let event = Self.event(faults[chance.below(faults.count)], replicas, clients, &chance)
            if !only.isEmpty, !only.contains(where: { event.description.contains($0) }) { continue }
            events.append((chance.within(3000...Self.span), event))
        }
        if !only.isEmpty {
            breaks = breaks && only.contains("breaks")
            stops = stops && only.contains("stops")
            strikes = strikes && only.contains("strikes")
        }
        strikes = strikes && !usesFiles
        events.sort { $0.at < $1.at }
    }

    /// An outage that outlasts most marks, or another server.
    static func strike(_ chance: inout Chance) -> Event {
        let long = chance.within(31_000...45_000)
        let kinds: [Outages.Kind] = [.readOnly, .locked, .commits]
        return switch chance.below(6) {
        case 3: .crash(milliseconds: long)
        case 4: .forget(lag: chance.within(1...2000), milliseconds: chance.within(100...3000))
        case 5: .split(lag: chance.within(1...2000), milliseconds: chance.within(100...1500))
        case let kind: .outage(kinds[kind], milliseconds: long)
        }
    }

    private static let kindsOfEvents = 28

    private static func event(_ kind: Int, _ replicas: Int, _ clients: Int, _ chance: inout Chance) -> Event {
        let (replica, client) = (chance.below(replicas), chance.below(clients))
        let isLong = chance.once(in: 4)
        let time = isLong ? chance.within(36_000...45_000) : chance.within(100...6000)
        switch kind {
        case 0: return .signIn(replica: replica, client: client)
        case 1: return .signOut(replica: replica, client: client, revokes: chance.once(in: 2))
        case 2: return .refresh(replica: replica, client: client)
        case 3: return .refuse(replica: replica, client: client, for: chance.within(1...9000))
        case 4, 5: return .reload(replica: replica, changes: !chance.once(in: 4))
        case 6: return .restart(replica: replica)
        case 7: return .kill(replica: replica, milliseconds: chance.within(1...4000))
        case 8: return .stop(replica: replica, milliseconds: time)
        case 9: return .dropConnections(replica: replica)
        case 10: return .resets(replica: replica, milliseconds: chance.within(100...3000))
        case 11: return .cutOff(replica: replica, milliseconds: time)
        case 12: return .crash(milliseconds: time)
        case 13: return .slow(milliseconds: chance.within(500...6000))
        case 14: return .loseAnswers(chance.within(1...3))
        case 15:
            return .delayAnswers(milliseconds: [500, 3000, 25_000][chance.below(3)], for: chance.within(500...9000))
        case 16: return .refuseRequests(for: chance.within(500...9000))
        case 17: return .setWallClock(replica: replica, seconds: chance.within(-4000...4000))
        case 18: return .rollOut(replica: replica, authority: chance.below(2), reloads: chance.once(in: 2))
        case 19: return .fullDisk(milliseconds: time)
        case 20:
            return .move(
                running: chance.once(in: 3) ? replica : nil,
                killedAfter: chance.once(in: 2) ? chance.within(1...3000) : nil)
        case 21: return .outage(.readOnly, milliseconds: time)
        case 22: return .outage(.locked, milliseconds: time)
        case 23: return .outage(.commits, milliseconds: time)
        case 24: return .holdUp(replica: replica, milliseconds: chance.within(100...6000))
        case 25: return .forget(lag: chance.within(1...8000), milliseconds: chance.within(100...6000))
        case 26: return .split(lag: chance.within(1...3000), milliseconds: chance.within(100...1500))
        default: return .leave(replica: replica, client: client)
        }
    }

    /// All of it, for a person to read.
    var text: String {
        """
        seed \(seed): \(replicas) replicas, clients \(kinds.map { "\($0)" }.joined(separator: " ")), tokens of \(tokenLife) s, timeout \(timeout), \
        grace of the server \(grace)\(usesFiles ? ", files" : "")\(breaks ? ", connections break" : "")\(stops ? ", processes stop" : "")\(strikes ? ", outages strike" : "")
        """ + events.map { "\n  \($0.at) ms: \($0.event)" }.joined()
    }
}

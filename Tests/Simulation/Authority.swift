import Heimdallr

/// An authorization server that rotates refresh tokens strictly and revokes the family when one is used twice
/// (RFC 9700 section 4.14.2). It keeps who presented what: the judge of all runs.
final class Authority: @unchecked Sendable {
    /// One sign-in and all tokens that came of it.
    final class Family: @unchecked Sendable {
        let client: String
        /// The process that signed in.
        let process: Process
        /// A later sign-in has a higher one.
        let number: Int
        /// A store has had it.
        var isDurable = false
        var isRevoked = false
        /// Documented reason of its end; `nil` while it lives, and when there is none.
        var excuse: String?
        /// Somebody signed in again or signed out since.
        var isReplaced = false
        /// The database lost it.
        var isForgotten = false
        /// Time at which a sign-out removed its record.
        var removedAt: ContinuousClock.Instant?

        init(_ client: String, _ process: Process, _ number: Int) {
            self.client = client
            self.process = process
            self.number = number
        }
    }

    /// One use of a refresh token that had an effect.
    final class Presentation: @unchecked Sendable {
        let process: Process
        let at: ContinuousClock.Instant
        let presented: String
        let successor: String
        var isDelivered = false
        /// When a store first had the successor.
        var savedAt: ContinuousClock.Instant?
        var isSaved: Bool { savedAt != nil }
        /// When the database lost it again.
        var forgottenAt: ContinuousClock.Instant?

        init(_ process: Process, _ at: ContinuousClock.Instant, _ presented: String, _ successor: String) {
            self.process = process
            self.at = at
            self.presented = presented
            self.successor = successor
        }
    }

    struct IssuedToken {
        var client: String
        /// The caller whose token was exchanged for it.
        var caller: String?
        var family: Family?
        var endsAt: ContinuousClock.Instant
        /// A store has it.
        var isSaved = false
    }

    typealias Answer = (status: Int, body: String, use: Presentation?)

    private struct RefreshToken {
        var family: Family
        var use: Presentation?
    }

    let name: String
    unowned let world: World
    private var refreshTokens: [String: RefreshToken] = [:]
    private var accessTokens: [String: IssuedToken] = [:]
    private var uses: [String: Presentation] = [:]
    /// Codes of browsers and devices, and who allowed them.
    var codes: [String: Code] = [:]
    private var lastNumber = 0

    init(_ name: String, _ world: World) {
        self.name = name
        self.world = world
    }

    var address: String { "https://\(name).test" }
    func secret(of client: String) -> String { "S-\(name)-\(client)" }
    /// The token of a caller, for one client to exchange.
    func callerToken(_ number: Int, for client: String) -> String { "C-\(name)-\(client)-\(number)" }

    // MARK: What resources and stores ask

    func token(_ accessToken: String) -> IssuedToken? { accessTokens[accessToken] }

    func family(of refreshToken: String) -> Family? { refreshTokens[refreshToken]?.family }

    func wasSaved(_ record: TokenRecord) {
        if let token = record.refreshToken?.revealed {
            if let use = uses[token], use.savedAt == nil { use.savedAt = world.now }
            if let family = refreshTokens[token]?.family {
                family.isDurable = true
                world.stored(family, self)
            }
        }
        if let token = record.accessToken?.revealed { accessTokens[token]?.isSaved = true }
    }

    /// The database lost all rotations from `remaining` to `lost`, or a sign-in or a sign-out.
    func forgot(_ lost: String?, for remaining: String?) {
        if let remaining, let family = family(of: remaining) { family.removedAt = nil }
        guard let lost, let family = family(of: lost) else { return }
        var step: String? = lost
        while let token = step, token != remaining {
            uses[token]?.forgottenAt = world.now
            step = uses[token]?.presented
        }
        if step == nil { family.isForgotten = true }
    }

    /// Whether `token` came of `earlier`, or of another sign-in.
    func follows(_ token: String, _ earlier: String) -> Bool {
        guard let new = refreshTokens[token], let old = refreshTokens[earlier], new.family === old.family else {
            return true
        }
        var step: String? = earlier
        while let at = step {
            if at == token { return true }
            step = refreshTokens[at]?.use?.successor
        }
        return false
    }

    // MARK: The token endpoint

    /// - Returns: status, body, and the use of a refresh token whose answer this is.
    func answer(_ form: [String: String], from client: String, _ process: Process) -> Answer {
        switch form["grant_type"] {
        case "client_credentials": return (200, body(client), nil)
        case "password": return (200, signIn(client, process).body, nil)
        case "refresh_token": return refresh(form["refresh_token"] ?? "", client, process)
        case "authorization_code": return redeem(form["code"] ?? "", client, process)
        case "urn:ietf:params:oauth:grant-type:device_code":
            return poll(form["device_code"] ?? "", client, process)
        case "urn:ietf:params:oauth:grant-type:token-exchange":
            return exchange(form["subject_token"] ?? "", client, process)
        default: return (400, "{\"error\":\"unsupported_grant_type\"}", nil)
        }
    }

    static func refusal(_ code: String) -> Answer { (400, "{\"error\":\"\(code)\"}", nil) }

    private func refresh(_ token: String, _ client: String, _ process: Process) -> Answer {
        guard let known = refreshTokens[token] else {
            world.fail("a refresh token that \(name) never gave out came from \(process) for \(client): \(token)")
            return Self.refusal("invalid_grant")
        }
        guard known.family.client == client else {
            world.fail("the refresh token of \(known.family.client) came for \(client) from \(process)")
            return Self.refusal("invalid_grant")
        }
        if process.usesFiles != world.usesFiles {
            world.fail("\(token) was presented by \(process), whose store was left by a move")
        }
        guard !known.family.isRevoked else { return Self.refusal("invalid_grant") }
        if let use = known.use {
            let excuse = excuse(for: use, by: process, known.family)
            world.log("\(token) again, by \(process), before by \(use.process): \(excuse ?? "no reason")")
            if let excuse {
                known.family.excuse = excuse
            } else {
                world.fail(
                    "\(token) was presented by \(process), and before by \(use.process), which lives (delivered "
                        + "\(use.isDelivered), saved \(use.isSaved))")
            }
            if world.now - use.at < world.plan.grace, refreshTokens[use.successor]?.use == nil {
                return (200, body(client, use.successor, known.family), use)
            }
            known.family.isRevoked = true
            return Self.refusal("invalid_grant")
        }
        let (text, successor) = pair(client, known.family)
        let use = Presentation(process, world.now, token, successor)
        refreshTokens[token]?.use = use
        uses[successor] = use
        return (200, text, use)
    }

    /// Documented reason of a second use; `nil`: there is none.
    private func excuse(for use: Presentation, by process: Process, _ family: Family) -> String? {
        if family.isReplaced { return "it was replaced by a person" }
        if use.process.usesFiles {
            // The lock of a process that is stopped stands.
            if use.isSaved { return nil }
            return use.isDelivered ? use.process.isDead ? "its holder died" : nil : "its answer was lost"
        }
        if let excuse = world.database.excuse(for: use, of: family.client, by: process) { return excuse }
        // It stood still under its mark until the mark had ended, and went on with its request.
        let marked = min(use.at, world.now - world.plan.leaseTime) - world.plan.timeout
        if process.absence(since: marked) >= World.longAbsence { return "its holder was stopped" }
        guard !use.isSaved else { return nil }
        if !use.isDelivered { return "its answer was lost" }
        if use.process === process { return nil }
        if use.process.isDead { return "its holder died" }
        let absence = use.process.absence(since: use.at)
        let downtime = absence > .seconds(3) ? world.database.downtime(since: use.at) : .zero
        if absence + downtime >= World.longAbsence { return "its holder was cut off" }
        return nil
    }

    /// RFC 7009: the whole family goes with its refresh token.
    func revoke(_ token: String, for client: String, _ process: Process) -> Answer {
        if let family = refreshTokens[token]?.family {
            if family.client != client { world.fail("\(process) revokes a token of \(family.client) for \(client)") }
            family.isRevoked = true
            family.isReplaced = true
        } else if let issued = accessTokens[token] {
            if issued.client != client { world.fail("\(process) revokes a token of \(issued.client) for \(client)") }
        } else {
            world.fail("\(process) revokes a token that \(name) never gave out: \(token)")
        }
        return (200, "", nil)
    }

    // MARK: Tokens

    func signIn(_ client: String, _ process: Process) -> (body: String, family: Family) {
        lastNumber += 1
        let family = Family(client, process, lastNumber)
        return (pair(client, family).0, family)
    }

    private func pair(_ client: String, _ family: Family) -> (String, String) {
        lastNumber += 1
        let refreshToken = "R-\(name)-\(client)-\(lastNumber)"
        refreshTokens[refreshToken] = RefreshToken(family: family)
        return (body(client, refreshToken, family), refreshToken)
    }

    func body(
        _ client: String, _ refreshToken: String? = nil, _ family: Family? = nil, caller: String? = nil
    ) -> String {
        lastNumber += 1
        let accessToken = "A-\(name)-\(client)-\(lastNumber)"
        let life = world.plan.tokenLife
        accessTokens[accessToken] = IssuedToken(
            client: client, caller: caller, family: family, endsAt: world.now + .seconds(life))
        let rest = refreshToken.map { ",\"refresh_token\":\"\($0)\"" } ?? ""
        return "{\"access_token\":\"\(accessToken)\",\"token_type\":\"Bearer\",\"expires_in\":\(life)\(rest)}"
    }
}

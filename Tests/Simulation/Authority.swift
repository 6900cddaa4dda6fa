import Heimdallr

/// An authorization server that rotates refresh tokens strictly and revokes the family when one is used twice
/// (RFC 9700 section 4.14.2). It keeps who presented what: the judge of all runs.
final class Authority {
    /// One sign-in and all tokens that came of it.
    final class Family {
        let client: String
        var isRevoked = false
        /// Documented reason of its end; `nil` while it lives, and when there is none.
        var excuse: String?
        /// Somebody signed in again or signed out since.
        var isReplaced = false

        init(_ client: String) { self.client = client }
    }

    /// One use of a refresh token that had an effect.
    final class Presentation {
        let process: Process
        let at: ContinuousClock.Instant
        let successor: String
        var isDelivered = false
        /// The database has the successor.
        var isSaved = false

        init(_ process: Process, _ at: ContinuousClock.Instant, _ successor: String) {
            self.process = process
            self.at = at
            self.successor = successor
        }
    }

    private struct RefreshToken {
        var family: Family
        var use: Presentation?
    }

    let name: String
    unowned let world: World
    private var refreshTokens: [String: RefreshToken] = [:]
    private var accessTokens: [String: (client: String, endsAt: ContinuousClock.Instant)] = [:]
    private var uses: [String: Presentation] = [:]
    private var lastNumber = 0

    init(_ name: String, _ world: World) {
        self.name = name
        self.world = world
    }

    var tokenEndpoint: String { "https://\(name).test/token" }

    // MARK: What resources and stores ask

    func isGood(_ accessToken: String, of client: String) -> Bool {
        guard let token = accessTokens[accessToken] else { return false }
        return token.client == client && world.now < token.endsAt
    }

    func owns(_ family: Family) -> Bool { refreshTokens.values.contains { $0.family === family } }

    func family(of refreshToken: String) -> Family? { refreshTokens[refreshToken]?.family }

    func wasSaved(_ refreshToken: String) { uses[refreshToken]?.isSaved = true }

    // MARK: The token endpoint

    /// - Returns: status, body, and the use of a refresh token whose answer this is.
    func answer(
        _ form: [String: String], from client: String, _ process: Process
    ) -> (status: Int, body: String, use: Presentation?) {
        switch form["grant_type"] {
        case "client_credentials": return (200, grant(client, nil), nil)
        case "password":
            let family = Family(client)
            let (text, _) = pair(client, family)
            return (200, text, nil)
        case "refresh_token": return refresh(form["refresh_token"] ?? "", client, process)
        default: return (400, "{\"error\":\"unsupported_grant_type\"}", nil)
        }
    }

    private static var gone: (status: Int, body: String, use: Presentation?) {
        (400, "{\"error\":\"invalid_grant\"}", nil)
    }

    private func refresh(
        _ token: String, _ client: String, _ process: Process
    ) -> (status: Int, body: String, use: Presentation?) {
        guard let known = refreshTokens[token] else {
            world.fail("a refresh token that \(name) never gave out came from \(process) for \(client): \(token)")
            return Self.gone
        }
        guard known.family.client == client else {
            world.fail("the refresh token of \(known.family.client) came for \(client) from \(process)")
            return Self.gone
        }
        guard !known.family.isRevoked else { return Self.gone }
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
                return (200, body(client, use.successor), use)
            }
            known.family.isRevoked = true
            return Self.gone
        }
        let (text, successor) = pair(client, known.family)
        let use = Presentation(process, world.now, successor)
        refreshTokens[token]?.use = use
        uses[successor] = use
        return (200, text, use)
    }

    /// Documented reason of a second use; `nil`: there is none.
    private func excuse(for use: Presentation, by process: Process, _ family: Family) -> String? {
        if family.isReplaced { return "it was replaced by a person" }
        if process.absence(since: use.at - world.plan.timeout) >= World.longAbsence { return "its holder was stopped" }
        guard !use.isSaved else { return nil }
        if !use.isDelivered { return "its answer was lost" }
        if use.process === process { return nil }
        if use.process.isDead { return "its holder died" }
        let absence = use.process.absence(since: use.at)
        let downtime = absence > .seconds(3) ? world.database?.downtime(since: use.at) ?? .zero : .zero
        if absence + downtime >= World.longAbsence { return "its holder was cut off" }
        return nil
    }

    private func grant(_ client: String, _ refreshToken: String?) -> String { body(client, refreshToken) }

    private func pair(_ client: String, _ family: Family) -> (String, String) {
        lastNumber += 1
        let refreshToken = "R-\(name)-\(client)-\(lastNumber)"
        refreshTokens[refreshToken] = RefreshToken(family: family)
        return (body(client, refreshToken), refreshToken)
    }

    private func body(_ client: String, _ refreshToken: String?) -> String {
        lastNumber += 1
        let accessToken = "A-\(name)-\(client)-\(lastNumber)"
        let life = world.plan.tokenLife
        accessTokens[accessToken] = (client, world.now + .seconds(life))
        let rest = refreshToken.map { ",\"refresh_token\":\"\($0)\"" } ?? ""
        return "{\"access_token\":\"\(accessToken)\",\"token_type\":\"Bearer\",\"expires_in\":\(life)\(rest)}"
    }
}

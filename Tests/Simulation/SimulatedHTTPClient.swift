import Heimdallr

/// Transport of a process to the authorization servers, for one client object.
final class SimulatedHTTPClient: HeimdallrHTTPClient, @unchecked Sendable {
    private let process: Process
    private let client: String
    private let number: Int
    /// Time of the last token request, for the second between two.
    private var lastBegan: ContinuousClock.Instant?
    /// The last answer did not come, so that the client may ask again at once.
    private var wasLost = false

    init(_ process: Process, _ client: String) {
        self.process = process
        self.client = client
        number = process.number()
    }

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let (world, began) = (process.world, process.world.now)
        if world.plan.stops, world.isFaulty, Scheduler.shared.chance.once(in: 400) {
            process.stop(for: .seconds(34))
        }
        try await process.pass()
        let deadline = world.now + request.timeout
        let form = Self.form(request.content.revealed)
        guard let authority = world.authorities.first(where: { request.url.hasPrefix($0.address + "/") }) else {
            world.fail("a request to \(request.url)")
            throw HeimdallrHTTPClientError.dns
        }
        if form["client_secret"] != authority.secret(of: client) {
            world.fail(
                "\(authority.name) got another secret than that of \(client): \(form["client_secret"] ?? "none")")
        }
        // After a reload the callers of the former object may still wait for its exchanges.
        let key = "\(process) \(client)" + (form["subject_token"].map { " \(number) \($0)" } ?? "")
        let path = request.url.dropFirst(authority.address.count)
        if path == "/token" {
            if form["subject_token"] == nil { keepPace(form["grant_type"] ?? "", began) }
            world.began(key)
        }
        defer { if path == "/token" { world.ended(key) } }
        do {
            let response = try await exchange(form, path, authority, deadline)
            wasLost = false
            return response
        } catch {
            wasLost = true
            throw error
        }
    }

    private func exchange(
        _ form: [String: String], _ path: Substring, _ authority: Authority, _ deadline: ContinuousClock.Instant
    ) async throws -> HeimdallrHTTPResponse {
        let world = process.world
        try await process.sleep(for: .milliseconds(Scheduler.shared.chance.within(1...30)))
        if let fault = world.requestFault() {
            if case .status(let status, let body) = fault {
                return HeimdallrHTTPResponse(status: status, body: Array(body.utf8))
            }
            if case .refused = fault { throw HeimdallrHTTPClientError.connect }
            throw HeimdallrHTTPClientError.cut
        }
        let answer: Authority.Answer =
            switch path {
            case "/token": authority.answer(form, from: client, process)
            case "/device": authority.device(client)
            case "/revoke": authority.revoke(form["token"] ?? "", for: client, process)
            default: (404, "", nil)
            }
        if answer.use != nil { world.strike() }
        world.log("\(process) \(client) asked \(authority.name)\(path): \(answer.status)")
        try await process.sleep(until: min(deadline, world.now + world.answerDelay()))
        // A process that was stopped may find its time-out before the answer.
        guard world.now < deadline else { throw HeimdallrHTTPClientError.timeout }
        if world.losesAnswer() { throw HeimdallrHTTPClientError.cut }
        answer.use?.isDelivered = true
        return HeimdallrHTTPResponse(status: answer.status, body: Array(answer.body.utf8))
    }

    /// Rule 5: token requests of a client begin at least a second apart. A lost answer is asked for again at once.
    private func keepPace(_ grantType: String, _ began: ContinuousClock.Instant) {
        // Those of a sign-in come when a person does.
        guard ["refresh_token", "client_credentials"].contains(grantType) else { return }
        if let lastBegan, !wasLost, began - lastBegan < .milliseconds(990) {
            process.world.fail("\(process) asks for \(client) at once again, after \(began - lastBegan)")
        }
        lastBegan = began
    }

    static func form(_ text: String) -> [String: String] {
        var form: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { form[parts[0]] = decoded(parts[1]) }
        }
        return form
    }

    private static func decoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

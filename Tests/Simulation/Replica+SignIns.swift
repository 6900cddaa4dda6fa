import Administration
import Heimdallr

// People, who sign in at one replica of the fleet and may end at another, and sign out.
extension Replica {
    func signIn(_ client: Int) {
        guard !isAway else { return }
        switch world.plan.kinds[client] {
        case .password: signInByPassword(client)
        case .browser: signInAtBrowser(client)
        case .device: signInByDevice(client)
        case .credentials, .exchange: return
        }
    }

    private func signInByPassword(_ client: Int) {
        let (slot, name) = (slots[client], Self.name(client))
        Task { [world] in
            do throws(LoginError) {
                try await slot.heimdallr.login(username: "somebody", password: Secret("p"))
                let token = try? await slot.heimdallr.accessToken(waiting: .seconds(5))
                let family = token?.refreshToken.flatMap { slot.server.family(of: $0.revealed) }
                world.signedIn(name, slot.server, family)
            } catch {
                world.log("not signed in to \(name): \(error)")
            }
        }
    }

    /// The browser comes back to any replica, perhaps twice.
    private func signInAtBrowser(_ client: Int) {
        let (slot, logins, process) = (slots[client], logins, process)
        Task { [world] in
            do {
                let (url, cookie) = try await logins.beginAtBrowser(
                    slot.heimdallr, redirectURI: "https://proxy.test/callback", ticket: nil)
                try await world.pause(100...8000)
                guard let answer = slot.server.allow(url) else { return world.fail("the browser was sent to \(url)") }
                for _ in 0...Scheduler.shared.chance.below(2) {
                    Task {
                        for _ in 0..<5 {
                            if let replica = world.someReplica(), await replica.finish(answer, cookie, slot.server) {
                                return
                            }
                            try await world.pause(500...2000)
                        }
                    }
                }
            } catch {
                world.log("no sign-in begun at \(process): \(error)")
            }
        }
    }

    /// - Returns: whether the browser has its answer, good or bad.
    private func finish(_ answer: String, _ cookie: LoginAttempts.Cookie, _ server: Authority) async -> Bool {
        let form = SimulatedHTTPClient.form(String(answer.drop { $0 != "?" }.dropFirst()))
        let (state, code, cookies) = (form["state"] ?? "", form["code"] ?? "", [cookie.name: cookie.value.revealed])
        let (logins, process, clients) = (logins, process, slots.map(\.heimdallr))
        var taken = try? logins.take(state: state, cookies: cookies)
        if taken == nil { taken = await logins.takeShared(state: state, cookies: cookies, clients: clients) }
        guard !process.isDead, let taken else { return false }
        do {
            try await logins.finish(taken, redirectedTo: answer)
            world.signedIn(taken.client.name, server, server.codes[code]?.family)
        } catch {
            world.log("not signed in to \(taken.client.name) at \(process): \(error)")
            judge("\(error)", process)
        }
        return true
    }

    /// A reload ends no sign-in.
    private func judge(_ reason: String, _ process: Process) {
        if reason == "\(LoginError.stopped)", !process.isDead, !isAway {
            world.fail("\(process) lives, and stopped a sign-in under way")
        }
    }

    /// The page that shows the code asks any replica how it goes.
    private func signInByDevice(_ client: Int) {
        let (slot, logins, process, name) = (slots[client], logins, process, Self.name(client))
        Task { [world] in
            do {
                let id = try await logins.beginDevice(slot.heimdallr)
                guard let code = logins.ticket(id)?.device?.userCode else { return }
                for _ in 0..<30 {
                    try await world.pause(1000...3000)
                    guard let replica = world.someReplica() else { continue }
                    switch await replica.progress(id, client) {
                    case .waiting, nil: continue
                    case .failed(let reason):
                        world.log("not signed in to \(name): \(reason)")
                        return replica.judge(reason, replica.process)
                    case .done:
                        if let family = slot.server.codes[code]?.family { world.signedIn(name, slot.server, family) }
                        return
                    }
                }
            } catch {
                world.log("no sign-in begun at \(process): \(error)")
            }
        }
    }

    private func progress(_ id: String, _ client: Int) async -> LoginAttempts.Ticket.Progress? {
        if let ticket = logins.ticket(id) { return ticket.progress }
        return await logins.resume(id, slots[client].heimdallr)?.progress
    }

    func signOut(_ client: Int, revokes: Bool) {
        guard !isAway, world.plan.kinds[client].wantsPerson else { return }
        let (slot, name) = (slots[client], Self.name(client))
        let family = world.signedOut(name, slot.server)
        // It may take effect late, after another sign-in.
        Task { [world, process] in
            let report = await slot.heimdallr.logOut(locally: !revokes)
            world.signedOut(name, slot.server)
            if report.isComplete, family?.isDurable == true, !world.isMoving { world.removed(family, by: process) }
        }
    }
}

extension World {
    /// Time that passes for a person.
    func pause(_ milliseconds: ClosedRange<Int>) async throws {
        let outcome = FirstOutcome<Void>()
        Scheduler.shared.after(.milliseconds(Scheduler.shared.chance.within(milliseconds))) {
            outcome.end(.success(()))
        }
        try await withCheckedThrowingContinuation { outcome.await($0) }
    }
}

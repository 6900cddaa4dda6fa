import Testing

@testable import HeimdallrProxy

@Suite("the start of thousands of clients", .timeLimit(.minutes(1)))
struct StartInStepsTests {
    @Test func `only a few clients at a time are without an outcome`() async {
        var (begun, settled, most) = (0, 0, 0)
        await StartInSteps.run(Array(0..<1000), patience: .seconds(60)) { _ in
            begun += 1
            most = max(most, begun - settled)
            return true
        } hasSettled: { client in
            // Outcomes come one by one, in another order than the starts.
            guard client % 2 == begun % 2 || begun - settled == StartInSteps.window else { return false }
            settled += 1
            return true
        }
        #expect(begun == 1000)
        #expect(most == StartInSteps.window)
    }

    @Test func `all clients are started although no server answers`() async {
        var begun = 0
        await StartInSteps.run(Array(0..<1000), patience: .zero) { _ in
            begun += 1
            return true
        } hasSettled: { _ in
            false
        }
        #expect(begun == 1000)
    }

    @Test func `no client is started once the process ends`() async {
        var begun = 0
        await StartInSteps.run(Array(0..<1000), patience: .seconds(60)) { _ in
            begun += 1
            return begun < 10
        } hasSettled: { _ in
            false
        }
        #expect(begun == 10)
    }
}

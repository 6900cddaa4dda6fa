import Testing

@testable import Heimdallr

@Suite struct `Fault points of debug builds` {
    @Test("what is asked for happens at its step, for its client, the time that was said, and once")
    func plan() {
        var plan = FaultPlan("after-commit:kill,lease-got/billing:stop:2,token-answered:pause=1.5")
        #expect(plan.next(.leaseGot, "billing") == nil)
        #expect(plan.next(.leaseGot, "other") == nil)
        #expect(plan.next(.leaseGot, "billing") == .stop)
        #expect(plan.next(.leaseGot, "billing") == nil)
        #expect(plan.next(.afterCommit, "any") == .kill)
        #expect(plan.next(.tokenAnswered, "any") == .pause(1.5))
        #expect(plan.next(.tokenAnswered, "any") == nil)
    }

    @Test("what is no plan does nothing", arguments: ["", "kill", "nowhere:kill", "after-commit:explode", ":,::"])
    func none(text: String) { #expect(FaultPlan(text).faults.isEmpty) }
}

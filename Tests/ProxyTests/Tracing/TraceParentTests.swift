import Testing

@testable import Proxy

@Suite("traceparent, by W3C Trace Context")
struct TraceParentTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let span = "b7ad6b7169203331"

    private func parse(_ text: String) -> TraceParent? { TraceParent(Array(text.utf8).span) }

    private func text(_ parent: TraceParent) -> String {
        let text = parent.text
        return String(decoding: text.indices.map { text[$0] }, as: UTF8.self)
    }

    @Test(arguments: ["00", "01", "02", "03"])
    func `a good traceparent is read and written as it is`(flags: String) throws {
        let written = "00-\(Self.trace)-\(Self.span)-\(flags)"
        let parent = try #require(parse(written))
        #expect(text(parent) == written)
        #expect(parent.flags.contains(.sampled) == (flags.last == "1" || flags.last == "3"))
        #expect(parent.span == 0xb7ad_6b71_6920_3331)
        #expect(parent.trace.high == 0x0af7_6519_16cd_43dd && parent.trace.low == 0x8448_eb21_1c80_319c)
    }

    @Test(
        "a traceparent that breaks the format is not used",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-0", "00-\(trace)-\(span)-001",
            "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-more", "ff-\(trace)-\(span)-01",
            "0-\(trace)-\(span)-01x", "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "0G-\(trace)-\(span)-01",
            "00-\(trace)-\(span)-0g", "00-00000000000000000000000000000000-\(span)-01",
            "00-\(trace)-0000000000000000-01", " 00-\(trace)-\(span)-01", "01-\(trace)-\(span)-01x",
            "01-\(trace)-\(span)-01.more", "CC-\(trace)-\(span)-01",
        ])
    func bad(written: String) { #expect(parse(written) == nil) }

    @Test(arguments: ["cc-\(trace)-\(span)-01", "01-\(trace)-\(span)-01-what-the-future-has"])
    func `the known part of a later version of traceparent is read, and ours goes on`(written: String) throws {
        #expect(text(try #require(parse(written))) == "00-\(Self.trace)-\(Self.span)-01")
    }

    @Test func `the caller's decision to sample counts, and unknown flags are not passed on`() throws {
        var random = FastRandom(seed: 1)
        let none = TraceSampler(share: 0)
        let all = TraceSampler(share: 1)
        let parent = try #require(parse("00-\(Self.trace)-\(Self.span)-ff"))
        let mark = try #require(SpanContext.decide(parent, none, &random))
        #expect(mark.trace == parent.trace && mark.parent == parent.span && mark.span != parent.span)
        #expect(mark.flags == [.sampled, .random])
        #expect(text(mark.traceParent).hasSuffix("-03"))
        let quiet = try #require(parse("00-\(Self.trace)-\(Self.span)-02"))
        #expect(SpanContext.decide(quiet, all, &random) == nil)
    }

    @Test func `without a caller's decision, sampling is random, and every trace has its own identifier`() throws {
        var random = FastRandom(seed: 1)
        #expect(SpanContext.decide(nil, TraceSampler(share: 0), &random) == nil)
        let marks = (0..<100).compactMap { _ in SpanContext.decide(nil, TraceSampler(share: 1), &random) }
        #expect(Set(marks.map(\.trace)).count == 100 && Set(marks.map(\.span)).count == 100)
        #expect(marks.allSatisfy { $0.parent == nil && $0.flags.contains(.sampled) })
        let sampler = TraceSampler(share: 0.1)
        let taken = (0..<20_000).filter { _ in SpanContext.decide(nil, sampler, &random) != nil }.count
        #expect((1800...2200).contains(taken), "\(taken) of 20,000")
    }

    @Test(arguments: [-1.0, 0, .nan, 1e-300, 0.5, 0.9999999999999999, 1, 7])
    func `any number is a share of traces to sample`(share: Double) {
        let sampler = TraceSampler(share: share)
        #expect(sampler.takes(.max) == (share >= 1))
        #expect(sampler.takes(0) == (share > 0))
    }
}

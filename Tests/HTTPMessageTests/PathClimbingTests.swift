import HTTPMessage
import Testing

@Suite("Paths that lead out of the folder they are put behind")
struct PathClimbingTests {
    private func climbs(_ path: String) -> Bool {
        let bytes = wire(path)
        return PathRules.climbs(bytes.span)
    }

    @Test(arguments: [
        "/..", "/../", "/../tenant-b/", "/a/../../b", "/%2e%2e/tenant-b/", "/%2E%2e/", "/.%2e/", "/%2e./x", "/..;/",
        "/..;a=b/x", "/%2e%2e;/", "/..%3b/", "/..%2f", "/..%2Ftenant-b/", "/x%2f..%2f..%2fb", "/a%2f%2e%2e", "/..%5cb",
        "/..\\b", "/a%5cb", "/a\\b", "/%252e%252e/", "/%252e%252e%252fb", "/..%252f", "/%25252e%25252e/",
        "/%25%32%65./",
        "/%c0%ae%c0%ae/", "/..%c0%af", "/..%c1%9c", "/%e0%80%ae./", "/%f0%80%80%ae./", "/%u002e%u002e/", "/..%u002f",
        "/..%00/", "/..%20/", "/%20../", "/..%09", "/..%3f/", "/..%23/", "/.../x", "/a/..?b",
        "/%2525252525252525252525252e",
        "/.%00./", "/.%00./x", "/%00../", "/..%00x/", "/..%0ax", "/.%0d./b", "/.%7f./", "/.%2500./", "/.%20./",
        "/%fc%80%80%80%80%ae%fc%80%80%80%80%ae/", "/.%f8%80%80%80%ae", "/x%fc%80%80%80%80%af..",
        "/%uff0e%uff0e/x", "/.%uFF0E/", "/%25uff0e./", "/..%uff0fb", "/%u2025/", "/.%u0000./",
        "/%ef%bc%8e%ef%bc%8e/x", "/.%ef%bc%8e", "/..%ef%bc%8fb", "/a%ef%bc%bc..", "/%e2%80%a4%e2%80%a4/", "/%e2%80%a5",
        "/%ef%b9%92./",
        "/..%c2%a0", "/.%c2%a0./", "/..%a0/", "/..%c2%85", "/.%e2%80%8b./", "/..%e3%80%80/", "/..%ff", "/%c0..",
        "/.%ef%bb%bf.", "/.%c2%ad./", "/.%ud800./", "/.%c0%2e/",
    ])
    func `a path that a server may read as one with dot segments leads out`(path: String) {
        #expect(climbs(path))
    }

    @Test(arguments: [
        "", "/", "/a/b", "/a/./b", "/.well-known/x", "/a..b/..c/d..", "/v1.2/x", "/projects/group%2Fproject/-/a",
        "/a//b",
        "/a;v=1/b", "/100%25", "/a%20b", "/caf%C3%A9", "/caf%E9", "/%zz", "/100%", "/?q=/../..\\", "/a?b=%2e%2e%2f",
        "/%2e", "/%7Euser", "/a%252Fb", "/a,b/%2C", "/a:b@c", "/%E2%80%AE",
    ])
    func `a path without dot segments in any spelling leads nowhere out`(path: String) {
        #expect(!climbs(path))
    }
}

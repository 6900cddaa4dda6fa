// A process of its own for tests of the certificate authority: issues certificates for the hosts of its arguments, prints
// them in base64, and holds them until its standard input ends.
//
//     AuthorityHolder HOST…
import Cryptography
import Glibc
import WireText

@main
enum AuthorityHolder {
    static func main() throws {
        let issued = try CertificateAuthority.issue(for: CommandLine.arguments.dropFirst())
        for root in issued.roots { print("root", Base64.encode(root)) }
        for leaf in issued.leaves.values { print("leaf", leaf.chain.map { Base64.encode($0) }.joined()) }
        print("done")
        _ = fflush(nil)
        while readLine() != nil {}
        withExtendedLifetime(issued) {}
    }
}

import Glibc

/// Usual reasons why listening fails, with advice.
enum SystemErrorText {
    static func text(of number: Int32) -> String {
        switch number {
        case EADDRINUSE: "the address is in use: end the process that listens there, or write another address"
        case EADDRNOTAVAIL: "this machine has no such address"
        case EACCES, EPERM: "permission denied"
        case ENOENT: "its folder does not exist"
        case ENOTDIR: "its folder is not a folder"
        default: "system error \(number)"
        }
    }
}

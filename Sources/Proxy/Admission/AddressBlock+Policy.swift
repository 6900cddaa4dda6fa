import Configuration
import CurlTransport

extension AddressPolicy.Block {
    public init(_ block: AddressBlock) { self.init(high: block.high, low: block.low, bits: block.bits) }
}

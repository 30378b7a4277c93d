/// The identity of the stored bytes of a value: a hash of them, and the header they begin with.
///
/// It stays in memory when the decoded value is released, so a read can tell without decoding the stored bytes whether
/// they are the last known ones.
struct Edition: Equatable, Sendable {
  let fingerprint: Fingerprint
  let header: Envelope.Header
}

/// A compared system, as named by the option `--systems`.
enum SystemName: String, CaseIterable, Sendable {
  case multicast, dictionary, share, opencombine, continuations, lossy

  /// The systems that are compared without the option `--systems`.
  static let usual: [SystemName] = [.multicast, .dictionary, .share, .opencombine, .continuations]
}

/// A type of elements, as named by the option `--element`.
enum ElementName: String, CaseIterable, Sendable {
  case int, owned
}

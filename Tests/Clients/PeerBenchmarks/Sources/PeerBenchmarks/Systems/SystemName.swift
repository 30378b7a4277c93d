/// What is compared, as `--systems` spells it.
enum SystemName: String, CaseIterable, Sendable {
  case multicast, dictionary, share, opencombine, continuations, lossy

  /// The systems that `--systems` left out stands for.
  static let usual: [SystemName] = [.multicast, .dictionary, .share, .opencombine, .continuations]
}

/// What the systems carry, as `--element` spells it.
enum ElementName: String, CaseIterable, Sendable {
  case int, owned
}

internal import BenchmarkKit

/// A row of measurements, as named by the option `--rows`.
enum Row: String, CaseIterable, Codable, Sendable {
  case save
  case burstKeys = "burst-keys"
  case burstKey = "burst-key"
  case loadCold = "load-cold"
  case loadKnown = "load-known"
  case observe
  case changeOne = "change-one"
  case manyKeys = "many-keys"
  case start
  case serverSave = "server-save"
  case serverBurst = "server-burst"

  /// Returns the comparisons of this row, in the order in which they are run and printed.
  ///
  /// The rows `server-save` and `server-burst` have none if the options name no server.
  func comparisons(_ options: Options, _ workspace: Workspace) async throws -> [Comparison<Setting>] {
    switch self {
    case .save: [Save(options, workspace).comparison]
    case .burstKeys: [Burst(options, workspace).ofManyKeys]
    case .burstKey: [Burst(options, workspace).ofOneKey]
    case .loadCold: [Load(options, workspace).cold]
    case .loadKnown: [Load(options, workspace).known]
    case .observe: [Observe(options, workspace).comparison]
    case .changeOne: ChangeOne(options, workspace).comparisons
    case .manyKeys: [ManyKeys(options, workspace).comparison]
    case .start: try await Start(options, workspace).comparisons()
    case .serverSave: Server(options).map { [$0.saves] } ?? []
    case .serverBurst: Server(options).map { [$0.burst] } ?? []
    }
  }
}

/// A row, or a variant of it.
struct Setting: ComparisonSetting, Equatable {
  let row: Row
  /// The variant, such as a size, if the row has several.
  var variant: String?

  var description: String { [row.rawValue, variant].compactMap(\.self).joined(separator: " · ") }

  /// False for ``Row/manyKeys``, because its runs are long.
  var needsWarmUp: Bool { row != .manyKeys }
}

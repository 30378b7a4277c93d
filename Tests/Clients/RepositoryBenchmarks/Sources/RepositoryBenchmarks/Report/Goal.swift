internal import BenchmarkKit

/// A limit that a figure of `SyncedRepository` or `MomentsRepo` should not exceed.
struct Goal: Codable, CustomStringConvertible {
  let text: String
  let figure: Double
  let limit: Double
  let isMet: Bool

  private init(_ text: String, _ figure: Double, atMost limit: Double) {
    self.text = text
    self.figure = figure
    self.limit = limit
    isMet = figure <= limit
  }

  var description: String {
    "\(isMet ? "met    " : "NOT met")  \(text): \(Table.number(figure)) ≤ \(Table.number(limit))"
  }

  /// Returns the goals whose figures were measured.
  static func all(in results: [ComparisonResult<Setting>]) -> [Goal] {
    let (synced, moments) = (SyncedSystem.label, MomentsSystem.label)

    func median(_ row: Row, _ system: String, _ metric: String? = nil, part: String? = nil) -> Double? {
      results.first { $0.setting.row == row && (part == nil || $0.setting.part == part) }?
        .systems.first { $0.system == system }?
        .figures.first { metric == nil || $0.metric == metric }?.median
    }

    func goal(_ text: String, _ figure: Double?, atMost limit: Double) -> Goal? {
      figure.map { Goal(text, $0, atMost: limit) }
    }

    func drain(_ mutations: Int, _ metric: String) -> Double? {
      median(.drain, synced, metric, part: Drain.part(mutations))
    }

    func likes(_ metric: String) -> Double? {
      let metric = Span.onProcessors(metric)
      guard let many = median(.likes, moments, metric, part: QueuedLikes.part(8_000)),
        let few = median(.likes, moments, metric, part: QueuedLikes.part(2_000))
      else { return nil }
      return many / few
    }

    let drainCPU = Span.onProcessors("drain")
    let drainRatio = drain(8_000, drainCPU).flatMap { many in drain(2_000, drainCPU).map { many / $0 } }
    return [
      goal("perform-shown, µs", median(.performShown, synced), atMost: 60),
      goal("drain of 2,000, ms", drain(2_000, "drain all"), atMost: 3_000),
      goal("drain CPU per change, with 8,000 ÷ with 2,000", drainRatio, atMost: 1.5),
      goal("timeline, like → observer, µs", median(.timeline, moments, "like → observer"), atMost: 1_500),
      goal("timeline, reply → confirmed, µs", median(.timeline, moments, "reply → confirmed"), atMost: 10_000),
      goal("likes, make CPU per like, with 8,000 ÷ with 2,000", likes("make"), atMost: 1.5),
      goal("likes, relaunch CPU per like, with 8,000 ÷ with 2,000", likes("relaunch"), atMost: 1.5),
      goal("likes, deliver CPU per like, with 8,000 ÷ with 2,000", likes("deliver"), atMost: 1.5),
    ].compactMap(\.self)
  }
}

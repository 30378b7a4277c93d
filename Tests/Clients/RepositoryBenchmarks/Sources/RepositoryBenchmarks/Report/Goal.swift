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
    let (syncedLabel, momentsLabel) = (SyncedSystem.label, MomentsSystem.label)

    // The metric defaults to the first one of the system, and the variant to the first one of the row.
    func median(_ row: Row, _ system: String, _ metric: String? = nil, variant: String? = nil) -> Double? {
      results.first { $0.setting.row == row && (variant == nil || $0.setting.variant == variant) }?
        .systems.first { $0.system == system }?
        .figures.first { metric == nil || $0.metric == metric }?.median
    }

    func goal(_ text: String, _ figure: Double?, atMost limit: Double) -> Goal? {
      figure.map { Goal(text, $0, atMost: limit) }
    }

    func drainMedian(_ mutationCount: Int, _ metric: String) -> Double? {
      median(.drain, syncedLabel, metric, variant: Drain.label(mutationCount))
    }

    // The processor times are those per like or per change. So the ratio is 1 if the total time is proportional to the
    // length of the queue.
    func likesCPURatio(_ metric: String) -> Double? {
      let cpuMetric = Span.onProcessors(metric)
      guard let perLikeOfMany = median(.likes, momentsLabel, cpuMetric, variant: QueuedLikes.label(8_000)),
        let perLikeOfFew = median(.likes, momentsLabel, cpuMetric, variant: QueuedLikes.label(2_000))
      else { return nil }
      return perLikeOfMany / perLikeOfFew
    }

    let drainCPUMetric = Span.onProcessors("drain")
    let drainCPURatio = drainMedian(8_000, drainCPUMetric).flatMap { perChangeOfMany in
      drainMedian(2_000, drainCPUMetric).map { perChangeOfFew in perChangeOfMany / perChangeOfFew }
    }
    return [
      goal("perform-shown, µs", median(.performShown, syncedLabel), atMost: 60),
      goal("drain of 2,000, ms", drainMedian(2_000, "drain all"), atMost: 3_000),
      goal("drain CPU per change, with 8,000 ÷ with 2,000", drainCPURatio, atMost: 1.5),
      goal("timeline, like → observer, µs", median(.timeline, momentsLabel, "like → observer"), atMost: 1_500),
      goal("timeline, reply → confirmed, µs", median(.timeline, momentsLabel, "reply → confirmed"), atMost: 10_000),
      goal("likes, make CPU per like, with 8,000 ÷ with 2,000", likesCPURatio("make"), atMost: 1.5),
      goal("likes, relaunch CPU per like, with 8,000 ÷ with 2,000", likesCPURatio("relaunch"), atMost: 1.5),
      goal("likes, deliver CPU per like, with 8,000 ÷ with 2,000", likesCPURatio("deliver"), atMost: 1.5),
    ].compactMap(\.self)
  }
}

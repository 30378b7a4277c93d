internal import BenchmarkKit
internal import Foundation

/// Measures open event streams while likes are made at fixed times, whether or not earlier likes have been answered.
struct Load: Sendable {
  static let p99Latency = "POST → last stream, p99"
  static let idleStreamMemory = "memory of an idle stream"

  private let row: Row
  private let options: Options
  private let workspace: Workspace

  init(_ row: Row, _ options: Options, _ workspace: Workspace) {
    (self.row, self.options, self.workspace) = (row, options, workspace)
  }

  private var timelineCount: Int { row.timelineCount(forStreams: options.streamCount) }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: row, timelines: timelineCount),
      contestants: options.systems.map { kind in
        Contestant(label: kind.label, count: options.seconds * options.likesPerSecond) {
          try await workspace.withFolder { folder in try await measure(kind, folder) }
        }
      })
  }

  private func measure(_ kind: ServiceKind, _ folder: URL) async throws -> [Reading] {
    let service = try ServiceProcess(kind, timelines: timelineCount, folder: folder)
    defer { service.stop() }
    let browsers = Browsers(port: service.port, timelines: timelineCount)
    do {
      let readings = try await measure(service, browsers)
      try await browsers.close()
      return readings
    } catch {
      try await browsers.close()
      throw error
    }
  }

  private func measure(_ service: ServiceProcess, _ browsers: Browsers) async throws -> [Reading] {
    try await openFirstStream(service, browsers)
    // The first stream of each timeline brings the timeline into memory. The one of timeline 0 is already open.
    for timeline in (0..<timelineCount).dropFirst() { try await browsers.open(timeline) }
    // This pause and the next one let the service complete the work that opening streams has caused.
    try await Task.sleep(for: .seconds(1))
    let memoryBefore = try service.residentMemory()
    let furtherCount = options.streamCount - timelineCount
    for stream in 0..<furtherCount { try await browsers.open(stream % timelineCount) }
    try await Task.sleep(for: .seconds(1))
    let memoryGrowth = try service.residentMemory() - memoryBefore
    let memoryPerStream = Double(memoryGrowth) / Double(max(furtherCount, 1)) / 1_024
    let (serviceTimeBefore, ownTimeBefore) = (try service.processorTime(), try ServiceProcess.ownProcessorTime())
    let eventCountBefore = try await browsers.read(\.eventCount)
    let byteCountBefore = try await browsers.read(\.byteCount)
    let start = ContinuousClock.now
    try await makeLikes(browsers)
    try await waitUntilStreamsShowAllLikes(service.kind, browsers)
    let duration = ContinuousClock.now - start
    let eventCount = try await browsers.read(\.eventCount) - eventCountBefore
    let byteCount = try await browsers.read(\.byteCount) - byteCountBefore
    func cpuReading(_ metric: String, _ time: Duration) -> Reading {
      Reading(metric: metric, unit: "% of a core", value: 100 * (time / duration), isCompared: false)
    }
    let latencies = try await browsers.read(\.latencies).sorted().map(\.milliseconds)
    let regressionCount = try await browsers.read(\.regressionCount)
    var readings = [
      Reading(metric: Self.p99Latency, unit: "ms", value: latencies[(latencies.count * 99 - 1) / 100]),
      Reading(metric: "p50", unit: "ms", value: latencies[latencies.count / 2]),
      Reading(metric: Self.idleStreamMemory, unit: "KiB", value: memoryPerStream),
      Reading(
        metric: "memory at the end", unit: "MiB", value: Double(try service.residentMemory()) / 1_048_576),
      cpuReading("service's CPU", try service.processorTime() - serviceTimeBefore),
      cpuReading("load's CPU", try ServiceProcess.ownProcessorTime() - ownTimeBefore),
      Reading(metric: "received", unit: "events", value: Double(eventCount), isCompared: false),
      Reading(
        metric: "size of an event", unit: "KiB", value: Double(byteCount) / Double(max(eventCount, 1)) / 1_024,
        isCompared: false),
      Reading(metric: "older after newer", unit: "events", value: Double(regressionCount), isCompared: false),
    ]
    let outdated = try await countOutdatedStreams(service.kind, browsers)
    readings.append(Reading(metric: "outdated at the end", unit: "streams", value: Double(outdated), isCompared: false))
    if service.kind.keepsOrder, regressionCount > 0 {
      throw BenchmarkError.wentBack(system: service.kind.label, times: regressionCount)
    }
    return readings
  }

  /// Opens the first stream, as soon as the service listens.
  private func openFirstStream(_ service: ServiceProcess, _ browsers: Browsers) async throws {
    for attempt in 1...200 {
      do {
        return try await browsers.open(0)
      } catch {
        if attempt == 200 { throw BenchmarkError.unreachable(system: service.kind.label) }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  private func makeLikes(_ browsers: Browsers) async throws {
    let start = ContinuousClock.now
    for number in 0..<options.seconds * options.likesPerSecond {
      let dueTime = start + .seconds(number) / options.likesPerSecond
      try await Task.sleep(until: dueTime, clock: .continuous)
      let (timeline, numberInTimeline) = (number % timelineCount, number / timelineCount)
      try await browsers.like(
        timeline, ShownTimeline.moment(ofLike: numberInTimeline),
        isLiked: ShownTimeline.isLiked(byLike: numberInTimeline), key: "\(number)", at: dueTime)
    }
  }

  /// Waits until each stream shows all likes of its timeline, and throws if this takes too long or a like failed.
  private func waitUntilStreamsShowAllLikes(_ kind: ServiceKind, _ browsers: Browsers) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while true {
      // A like that failed is never shown, so this comes first.
      if let status = try await browsers.read(\.failedStatus) {
        throw BenchmarkError.likeFailed(system: kind.label, status: status)
      }
      let missingCount = try await browsers.read(\.missingCount)
      if missingCount <= 0 { return }
      if .now > deadline { throw BenchmarkError.notConverged(system: kind.label, missing: missingCount) }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Returns the number of streams that aren't up to date; see ``StreamRecords/outdatedCount``.
  ///
  /// Opens a new stream of each timeline for the comparison. Waits for a while if any stream is outdated, because the
  /// last events may still be in transit.
  ///
  /// - Throws: ``BenchmarkError/outdated(system:streams:)`` if streams remain outdated and the service keeps the order.
  private func countOutdatedStreams(_ kind: ServiceKind, _ browsers: Browsers) async throws -> Int {
    for timeline in 0..<timelineCount { try await browsers.open(timeline) }
    let deadline = ContinuousClock.now + .seconds(kind.keepsOrder ? 60 : 2)
    while true {
      let count = try await browsers.read(\.outdatedCount)
      if count == 0 { return 0 }
      if .now > deadline {
        if kind.keepsOrder { throw BenchmarkError.outdated(system: kind.label, streams: count) }
        return count
      }
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}

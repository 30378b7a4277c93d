internal import IssueTracker
internal import MulticastTesting
internal import Repository
internal import Synchronization

/// The list as it is shown now.
final class ShownList: Sendable {
  private let shown = Mutex<[Issue]>([])

  var issues: [Issue] { shown.withLock { $0 } }

  /// Observes the list, which is fetched again and again meanwhile.
  func observe(_ app: App) async {
    for await page in app.issues.values(of: App.project, loading: .whileObserved(every: .milliseconds(150))) {
      say(["list", "\(page.elements.count)"])
      shown.withLock { $0 = page.elements }
    }
  }
}

/// A user who scrolls and pulls to refresh.
struct Reader {
  let app: App
  let list: ShownList
  var random: SplitMix64
  private var isListObserved = false

  init(app: App, list: ShownList, random: SplitMix64) {
    (self.app, self.list, self.random) = (app, list, random)
  }

  /// Loads pages until the list has a hundred issues, before the list is observed.
  mutating func load() async {
    while await loadMore() < 100 { await pause() }
    isListObserved = true
  }

  /// Reloads the first page and loads further ones, in turn with pauses.
  mutating func run() async {
    while !Task.isCancelled {
      if Bool.random(using: &random) {
        await loadMore()
      } else {
        await app.attempt { try await app.issues.reload(App.project) }
      }
      await pause()
    }
  }

  /// Loads a page, and returns the number of issues that the list has then.
  @discardableResult
  private mutating func loadMore() async -> Int {
    guard await app.attempt({ try await app.issues.loadMore(App.project) }) else { return 0 }
    for await page in app.issues.values(of: App.project) {
      // A new issue without a number is not loaded, and may be rolled back.
      let count = page.elements.count { $0.number != nil }
      // The observer of the list may have older lists to print.
      while isListObserved, list.issues.count < count - Editor.count, !Task.isCancelled { await pause() }
      say(["loaded", "\(count)"])
      return count
    }
    return 0
  }

  /// Sleeps at the pace of a user, unless the task is cancelled.
  private mutating func pause() async {
    let time = Duration.milliseconds(Int.random(in: 0...30, using: &random))
    try? await Task.sleep(for: time)
  }
}

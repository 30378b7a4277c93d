internal import Moments
internal import TerminalUI

extension TimelineScreen {
  /// The contents of the screen.
  struct Model: Hashable, Sendable {
    /// The origin of the timeline on the screen, and its age.
    enum Source: Hashable, Sendable {
      /// The timeline was stored on this device before the screen was opened, and may be out of date.
      case stored(age: String)
      /// The timeline was fetched from the server.
      case fetched(age: String)
    }

    /// A moment in the list.
    struct Row: Hashable, Sendable {
      var id: String
      var userName: String
      var title: String?
      var date: String?
      var isLiked: Bool
      /// Whether `isLiked` is a change that the server doesn't have yet.
      var isPending = false
      var likeCount: Int
    }

    /// The detail of the selected moment.
    struct Detail: Hashable, Sendable {
      var row: Row
      var url: String?
      var photos: [String] = []
    }

    var userName: String?
    /// Whether the store was read, so that the screen may say that there are no moments.
    var isRead = true
    /// The origin of the timeline; `nil` while there is no timeline to show.
    var source: Source?
    var isLoading = false
    var isOnline = true
    /// The reason why the last load failed.
    var problem: String?
    /// The total number of likes of all moments.
    var likeCount = 0
    /// The number of moments with a like, or the removal of a like, that the server doesn't have yet.
    var pendingCount = 0
    var rows: [Row] = []
    /// The index of the selected row.
    var selection = 0
    var detail: Detail?
    /// The description of the latest activity.
    var activity = ""
    /// The hints for the keys, most important first.
    var keys: [KeyHint] = []
  }
}

extension TimelineScreen.Model.Row {
  init(_ row: MomentListItemViewModel) {
    self.init(
      id: row.id, userName: row.userName, title: row.title, date: row.postDateDescription, isLiked: row.isLiked,
      isPending: row.isPending, likeCount: row.likeCount)
  }
}

internal import Moments
internal import TerminalUI

extension TimelineScreen {
  /// All that the screen shows, in words.
  struct Model: Hashable, Sendable {
    /// Where the timeline on the screen comes from, and how long ago.
    enum Source: Hashable, Sendable {
      /// From this device. Whether there is something newer isn't known yet.
      case stored(age: String)
      /// From the server.
      case fetched(age: String)
    }

    /// A moment in the list.
    struct Row: Hashable, Sendable {
      var id: String
      var userName: String
      var title: String?
      var date: String?
      var isLiked: Bool
      /// Whether the server has yet to hear of the like, or of its end.
      var isPending = false
      var likeCount: Int
    }

    /// The selected moment, with all there is of it.
    struct Detail: Hashable, Sendable {
      var row: Row
      var url: String?
      var photos: [String] = []
    }

    var userName: String?
    /// Nil while there is nothing to show.
    var source: Source?
    var isLoading = false
    var isOnline = true
    /// Why the last load failed.
    var problem: String?
    /// Of all moments together.
    var likeCount = 0
    /// How many likes wait for the network.
    var pendingCount = 0
    var rows: [Row] = []
    /// The index of the selected row.
    var selection = 0
    var detail: Detail?
    /// What happened last.
    var activity = ""
    /// The most important first: those that do not fit are left out.
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

/// The value that most rows of measurements store; see ``Row``.
///
/// With its default of 16 posts, it is about 5 KiB of JSON.
struct Timeline: Codable, Equatable, Sendable {
  /// Distinguishes one saved value from the next.
  var serial: Int
  var owner: String
  var posts: [Post]

  init(serial: Int = 0, postCount: Int = 16) {
    self.serial = serial
    owner = "user-\(serial % 97)"
    posts = (0..<postCount).map(Post.init(number:))
  }
}

/// One entry of a ``Timeline``.
struct Post: Codable, Equatable, Sendable {
  var id: String
  var author: String
  var avatar: String
  var text: String
  var createdAt: Double
  var likes: Int
  var isLiked: Bool
  var photo: String?

  init(number: Int) {
    id = "post-\(100_000 + number)"
    author = "Author \(number % 7)"
    avatar = "https://images.example.com/avatars/\(number % 7)/small@2x.jpg"
    text = """
      Walked along the river until the rain began, and found the small café at the corner open again. \
      The owner remembered us. Number \(number).
      """
    createdAt = 800_000_000.25 + Double(number) * 61
    likes = number * 13 % 101
    isLiked = number.isMultiple(of: 3)
    photo = number.isMultiple(of: 4) ? nil : "https://images.example.com/photos/\(number)/large@2x.jpg"
  }
}

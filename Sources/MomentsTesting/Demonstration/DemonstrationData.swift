internal import Moments

/// The timelines of a ``DemonstrationServer``, the same as those of the GraphQL server of the tests.
///
/// The first timeline has enough moments to scroll a screen, titles in Latin and in Chinese script, and moments of
/// every kind: with one photo or several, with a link, of an unknown type, and with no, few or many likes.
enum DemonstrationData {
  /// The timeline of each user.
  ///
  /// `isLiked` is `nil`, because the server derives it from the likes.
  static let timelines = [
    MomentsDetails(
      userDetails: jakeLin.userDetails,
      moments: momentsForJakeLin),
    MomentsDetails(
      userDetails: meiZhou.userDetails,
      moments: momentsForMeiZhou),
  ]

  private static var momentsForJakeLin: [MomentsDetails.Moment] {
    [
      moment(
        "0", by: taylorSwift, "the pic is awesome",
        photos: ["taylor-stage"], at: 1_605_521_360, likedBy: [jakeLin]),
      moment(
        "1", by: mattt, "Low-level programming on iOS",
        photos: ["low-level-programming"], at: 1_605_519_980, likedBy: [inesDuarte]),
      moment(
        "2", by: liXiaowen, "周末去爬山,山顶的云海太美了",
        photos: ["cloud-sea-1", "cloud-sea-2", "cloud-sea-3"],
        at: 1_605_514_020, likedBy: [jakeLin, wangZiang, chenJing]),
      moment(
        "3", by: raviMenon, "Structured concurrency, explained with kitchens",
        type: .url, url: "articles/structured-concurrency", at: 1_605_508_800, likedBy: [mattt, oskarLindqvist]),
      moment(
        "4", by: amaraOkafor, "Nine hours of rain, four minutes of sun",
        photos: ["rain-window", "wet-street", "sun-at-last", "rainbow"],
        at: 1_605_501_240, likedBy: [jakeLin, meiZhou, inesDuarte, hannaVirtanen]),
      moment(
        "5", by: oskarLindqvist, "First ice on the lake",
        type: .unknown("VIDEO"), url: "videos/first-ice", at: 1_605_496_500, likedBy: [hannaVirtanen]),
      moment(
        "6", by: meiZhou, "Family day 👨‍👩‍👧‍👦 at the beach 🏖️🇦🇺 — sunscreen everywhere 🧴😂",
        photos: ["beach-family", "beach-castle"], at: 1_605_489_300, likedBy: [jakeLin, liXiaowen]),
      moment("7", by: hannaVirtanen, "Nobody has seen this one yet", photos: ["quiet-forest"], at: 1_605_482_100),
      moment(
        "8", by: wangZiang, "新买的键盘终于到了!",
        photos: ["new-keyboard"], at: 1_605_474_000, likedBy: [raviMenon, mattt]),
      moment(
        "9", by: inesDuarte, "Pastéis de nata, third attempt: finally the right blisters",
        photos: ["nata-tray", "nata-close"],
        at: 1_605_466_920, likedBy: [jakeLin, amaraOkafor, chenJing, hannaVirtanen]),
      moment(
        "10", by: mattt, "A bug that only happens on the first Tuesday of the month",
        photos: ["calendar-bug"], at: 1_605_459_600, likedBy: [raviMenon]),
      moment(
        "11", by: chenJing, "晨跑十公里,空气里有桂花的味道",
        photos: ["osmanthus-road", "morning-run"], at: 1_605_452_400, likedBy: [liXiaowen]),
      moment(
        "12", by: raviMenon,
        photos: [
          "night-market-1", "night-market-2", "night-market-3", "night-market-4", "night-market-5", "night-market-6",
        ],
        at: 1_605_441_600, likedBy: [jakeLin, meiZhou]),
      moment(
        "13", by: amaraOkafor,
        "The library extended its opening hours, so I extended my reading list. "
          + "Twelve books, two weeks, one very patient librarian, and a bag that will not close.",
        photos: ["book-pile"], at: 1_605_430_800, likedBy: [inesDuarte, oskarLindqvist]),
      moment(
        "14", by: oskarLindqvist, "Sourdough no. 41",
        photos: ["sourdough"], at: 1_605_420_000, likedBy: [inesDuarte]),
      moment(
        "15", by: taylorSwift, "Rehearsal notes",
        photos: ["rehearsal", "notebook"], at: 1_605_409_200, likedBy: [jakeLin, meiZhou, wangZiang]),
    ]
  }

  private static var momentsForMeiZhou: [MomentsDetails.Moment] {
    [
      moment(
        "100", by: jakeLin, "Whiteboard after the planning meeting",
        photos: ["whiteboard"], at: 1_605_517_200, likedBy: [meiZhou, mattt]),
      moment(
        "101", by: liXiaowen, "今天的晚霞",
        photos: ["sunset-1", "sunset-2"], at: 1_605_487_000, likedBy: [wangZiang]),
      moment(
        "102", by: inesDuarte, "Porto from the other side of the river",
        photos: ["porto"], at: 1_605_400_000, likedBy: [meiZhou]),
    ]
  }

  private static let jakeLin = Person(id: "0", name: "Jake Lin", slug: "jake-lin")
  private static let meiZhou = Person(id: "1", name: "Mei Zhou", slug: "mei-zhou")
  private static let taylorSwift = Person(id: "2", name: "Taylor Swift", slug: "taylor-swift")
  private static let mattt = Person(id: "3", name: "Mattt", slug: "mattt")
  private static let liXiaowen = Person(id: "5", name: "李晓雯", slug: "li-xiaowen")
  private static let raviMenon = Person(id: "10", name: "Ravi Menon", slug: "ravi-menon")
  private static let amaraOkafor = Person(id: "8", name: "Amara Okafor", slug: "amara-okafor")
  private static let oskarLindqvist = Person(id: "7", name: "Oskar Lindqvist", slug: "oskar-lindqvist")
  private static let hannaVirtanen = Person(id: "11", name: "Hanna Virtanen", slug: "hanna-virtanen")
  private static let wangZiang = Person(id: "6", name: "王子昂", slug: "wang-ziang")
  private static let inesDuarte = Person(id: "4", name: "Ines Duarte", slug: "ines-duarte")
  private static let chenJing = Person(id: "9", name: "陈静", slug: "chen-jing")
}

extension DemonstrationData {
  private static let root = "https://example.com/"

  private struct Person {
    let id: String
    let name: String
    let slug: String

    var avatar: String { "\(root)avatars/\(slug).png" }
    var momentUserDetails: MomentsDetails.Moment.MomentUserDetails { .init(name: name, avatar: avatar) }
    var like: MomentsDetails.Moment.Like { .init(id: id, avatar: avatar) }
    var userDetails: MomentsDetails.UserDetails {
      .init(id: id, name: name, avatar: avatar, backgroundImage: "\(root)backgrounds/\(slug).jpg")
    }
  }

  private static func moment(
    _ id: String,
    by author: Person,
    _ title: String? = nil,
    type: MomentsDetails.Moment.MomentType = .photos,
    url: String? = nil,
    photos: [String] = [],
    at secondsSince1970: Int,
    likedBy likers: [Person] = []
  ) -> MomentsDetails.Moment {
    .init(
      id: id,
      userDetails: author.momentUserDetails,
      type: type,
      title: title,
      url: url.map { root + $0 },
      photos: photos.map { "\(root)photos/\($0).jpg" },
      createdDate: String(secondsSince1970),
      likes: likers.map(\.like))
  }
}

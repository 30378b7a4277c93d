// swift-tools-version: 6.3

import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "Moments",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Multicast", targets: ["Multicast"]),
    .library(name: "DataStore", targets: ["DataStore"]),
    .library(name: "Repository", targets: ["Repository"]),
    .library(name: "GraphQLClient", targets: ["GraphQLClient"]),
    .library(name: "Moments", targets: ["Moments"]),
    .library(name: "SignIn", targets: ["SignIn"]),
    .library(name: "Todo", targets: ["Todo"]),
    .library(name: "MulticastTesting", targets: ["MulticastTesting"]),
    .library(name: "DataStoreTesting", targets: ["DataStoreTesting"]),
    .library(name: "RepositoryTesting", targets: ["RepositoryTesting"]),
    .library(name: "MomentsTesting", targets: ["MomentsTesting"]),
    .executable(name: "moments", targets: ["MomentsCommand"]),
  ],
  traits: [
    .trait(name: "SQLite", description: "Adds SQLiteStore, over the system's libsqlite3."),
    .trait(name: "PostgreSQL", description: "Adds PostgreSQLStore, over the system's libpq."),
  ],
  targets: [
    .target(name: "Multicast", swiftSettings: swiftSettings),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
    .target(
      name: "DataStore",
      dependencies: [
        "Multicast", .target(name: "CSQLite", condition: .when(traits: ["SQLite"])),
        .target(name: "CPostgreSQL", condition: .when(traits: ["PostgreSQL"])),
      ],
      swiftSettings: swiftSettings),
    .target(name: "Repository", dependencies: ["DataStore", "Multicast"], swiftSettings: swiftSettings),
    .target(name: "CCurl"),
    .target(
      name: "GraphQLClient",
      dependencies: ["Multicast", .target(name: "CCurl", condition: .when(platforms: [.linux]))],
      swiftSettings: swiftSettings),
    .target(
      name: "Moments", dependencies: ["GraphQLClient", "Repository", "DataStore", "Multicast"],
      swiftSettings: swiftSettings),
    .target(name: "SignIn", dependencies: ["Multicast"], swiftSettings: swiftSettings),
    .target(name: "Todo", dependencies: ["Repository", "DataStore", "Multicast"], swiftSettings: swiftSettings),
    .target(name: "MulticastTesting", dependencies: ["Multicast"], swiftSettings: swiftSettings),
    .target(name: "DataStoreTesting", dependencies: ["DataStore", "Multicast"], swiftSettings: swiftSettings),
    .target(
      name: "RepositoryTesting", dependencies: ["Repository", "DataStore", "Multicast", "MulticastTesting"],
      swiftSettings: swiftSettings),
    .target(
      name: "MomentsTesting", dependencies: ["Moments", "GraphQLClient", "Repository", "DataStore", "Multicast"],
      swiftSettings: swiftSettings),
    .target(name: "TerminalUI", dependencies: ["DataStore", "Multicast"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "MomentsCommand",
      dependencies: [
        "TerminalUI", "Moments", "MomentsTesting", "GraphQLClient", "SignIn", "Todo", "Repository", "DataStore",
        "Multicast", "MulticastTesting",
      ],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "TestChild",
      dependencies: [
        "Moments", "GraphQLClient", "Repository", "DataStore", "Multicast", "MomentsTesting", "MulticastTesting",
        "TestSupport", "ThreadSanitizerSuppressions",
      ],
      path: "Tests/Support/TestChild", swiftSettings: swiftSettings),
    .target(name: "ThreadSanitizerSuppressions", path: "Tests/Support/ThreadSanitizerSuppressions"),
    .target(name: "TestRounds", path: "Tests/Support/TestRounds", swiftSettings: swiftSettings),
    .target(
      name: "TestSupport", dependencies: ["TerminalUI", "DataStore", "Multicast", "ThreadSanitizerSuppressions"],
      path: "Tests/Support/TestSupport",
      swiftSettings: swiftSettings),
    .testTarget(
      name: "MulticastTests", dependencies: ["Multicast", "MulticastTesting", "TestRounds"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "DataStoreTests",
      dependencies: [
        "DataStore", "Multicast", "DataStoreTesting", "MulticastTesting", "TestChild", "TestRounds", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RepositoryTests",
      dependencies: [
        "Repository", "DataStore", "Multicast", "DataStoreTesting", "RepositoryTesting", "MulticastTesting",
        "TestChild", "TestRounds", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "GraphQLClientTests",
      dependencies: ["GraphQLClient", "Multicast", "MulticastTesting", "TestChild", "TestRounds", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "MomentsTests",
      dependencies: [
        "Moments", "GraphQLClient", "Repository", "DataStore", "Multicast", "MomentsTesting", "MulticastTesting",
        "TestChild", "TestRounds", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "SignInTests", dependencies: ["SignIn", "Multicast", "MulticastTesting"], swiftSettings: swiftSettings),
    .testTarget(
      name: "TodoTests", dependencies: ["Todo", "DataStore", "Multicast", "MulticastTesting", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "DocumentationTests",
      dependencies: [
        "Moments", "GraphQLClient", "SignIn", "Todo", "Repository", "DataStore", "Multicast", "MomentsTesting",
        "RepositoryTesting", "DataStoreTesting", "MulticastTesting", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "TerminalUITests",
      dependencies: ["TerminalUI", "Multicast", "MulticastTesting", "TestSupport", "ThreadSanitizerSuppressions"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "MomentsCommandTests",
      dependencies: [
        "MomentsCommand", "TerminalUI", "Moments", "GraphQLClient", "SignIn", "Todo", "Repository", "DataStore",
        "Multicast", "MomentsTesting", "MulticastTesting", "TestRounds", "TestSupport", "ThreadSanitizerSuppressions",
      ],
      swiftSettings: swiftSettings),
  ]
)

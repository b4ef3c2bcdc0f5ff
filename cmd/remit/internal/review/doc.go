// Package review reports declarations that mislead models or users: missing or
// long descriptions, schemas that contradict themselves, and tools that are
// easily confused. It also reports effects that no code verifies. A finding
// does not keep a tool from running.
package review

package effect

// Presence is how much of an effect a probe found. The zero Presence is
// unknown, like PresenceUnknown.
type Presence string

// The presences of an effect.
const (
	PresenceUnknown Presence = "cannot_tell" // the probe found no answer
	PresenceApplied Presence = "applied"     // the whole effect is there
	PresencePartial Presence = "partial"     // a part of the effect is there
	PresenceAbsent  Presence = "absent"      // nothing of the effect is there
)

// OrUnknown returns PresenceUnknown for every value that is not one of the
// constants, and the presence itself otherwise.
func (p Presence) OrUnknown() Presence {
	switch p {
	case PresenceApplied, PresencePartial, PresenceAbsent:
		return p
	case PresenceUnknown:
	}
	return PresenceUnknown
}

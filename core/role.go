package core

// A Role is the part of the API that a token opens.
type Role string

// The roles of tokens.
const (
	RoleSend    Role = "send"    // send events, and nothing else
	RoleRead    Role = "read"    // read everything; send and change nothing
	RoleOperate Role = "operate" // send, read, and make every change from which nothing is lost
	RoleAdmin   Role = "admin"   // everything, also delete
)

// ranks order the roles. A role includes all roles of a lower rank.
var ranks = map[Role]int{RoleSend: 1, RoleRead: 1, RoleOperate: 2, RoleAdmin: 3}

// Includes reports whether a token with role r may do an act that needs another role. RoleSend
// and RoleRead do not include each other. No role includes a text that is no role, so a route
// without a role is closed to every token.
func (r Role) Includes(need Role) bool {
	return ranks[need] > 0 && (r == need || ranks[r] > ranks[need])
}

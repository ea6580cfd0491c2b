package core

import "testing"

func TestRoles(t *testing.T) {
	all := []Role{RoleSend, RoleRead, RoleOperate, RoleAdmin, "", "root"}
	for r, want := range map[Role]string{
		RoleSend: "send", RoleRead: "read", RoleOperate: "send read operate", RoleAdmin: "send read operate admin", "": "", "root": "",
	} {
		got := ""
		for _, need := range all {
			if r.Includes(need) {
				got += " " + string(need)
			}
		}
		if got != "" {
			got = got[1:]
		}
		if got != want {
			t.Errorf("role %q includes %q, want %q", r, got, want)
		}
	}
}

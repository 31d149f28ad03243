#!/bin/sh
# Neither starts nor enables the service. Without an access token everyone on the machine may do everything there, and
# who installs the package for the command alone wants no server. "systemctl enable --now delaytask" starts it.
set -e
systemd-sysusers delaytask.conf
install -d -m 0700 -o delaytask -g delaytask /var/lib/delaytask
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# After an upgrade the new version runs, if one ran before, and if Debian's policy-rc.d allows it.
	"$(command -v deb-systemd-invoke || command -v systemctl)" try-restart delaytask.service || true
fi

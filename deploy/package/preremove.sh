#!/bin/sh
# Stops the service at a removal: dpkg says "remove", rpm says that no version stays. Installed anew, it waits again
# until it is enabled.
set -e
case "$1" in
remove | 0)
	command -v systemctl >/dev/null || exit 0
	if [ -d /run/systemd/system ]; then systemctl stop delaytask.service; fi
	systemctl --no-reload disable delaytask.service
	;;
esac

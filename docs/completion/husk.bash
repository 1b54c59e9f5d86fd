# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of husk(1) for bash. Compared with the tables of commands and flags by the unit tests.

_husk_flags() { # COMMAND
	local global='--debug --dir= --help --insecure-options= --local-config= --stage1= --system-config= --user-config='
	local app='--annotation= --cap-remove= --cap-retain= --no-store --store-only --user-annotation= --user-label= --stderr= --stdin= --stdout= --caps-remove= --caps-retain= --cpu= --cpu-shares= --environment= --exec= --group= --init --memory= --name=
		--no-new-privileges --oom-score-adj= --pids-limit= --pull-policy= --readonly-rootfs --rlimit= --seccomp= --signature= --stop-signal= --supplementary-gids=
		--user= --working-dir='
	local stage1='--stage1-from-dir= --stage1-hash= --stage1-name= --stage1-path= --stage1-url='
	case $1 in
	'app add') echo "$global $app --inherit-env --mnt-volume= --mount= --set-env= --set-env-file=" ;;
	'app exec' | enter) echo "$global --app= --env= --no-tty --timeout= --tty --user= --workdir=" ;;
	'app list') echo "$global --format= --no-legend --uuid-file=" ;;
	'app rm' | 'app stop') echo "$global --app= --grace= --uuid-file=" ;;
	'app sandbox') echo "$global $stage1 --annotation= --name= --no-overlay --private-users --accel= --apps-cpu= --apps-memory= --boot-timeout= --cgroup-parent= --cpus= --detach --dns= --dns-domain= --dns-opt= --dns-search= --exit-policy= --hostname= --hosts-entry= --hot-volumes= --kernel=
		--libvirt-uri= --machine= --memory= --net= --netns= --port= --qemu= --scratch-size= --user-annotation= --user-label= --sysctl= --uuid-file-save= --virtiofsd= --vmm= --volume= --volume-ids= --vsock=" ;;
	'app start') echo "$global --app= --uuid-file=" ;;
	'app stats') echo "$global --app= --format= --uuid-file=" ;;
	'app status') echo "$global --app= --format= --uuid-file=" ;;
	attach) echo "$global --app= --detach-keys= --keep-stdin --mode= --uuid-file=" ;;
	cat-manifest) echo "$global --pretty-print --uuid-file=" ;;
	config) echo "$global --pretty-print" ;;
	doctor) echo "$global --format=" ;;
	events) echo "$global --replay --uuid-file=" ;;
	export) echo "$global --app= --format= --overwrite --uuid-file=" ;;
	fetch | 'image fetch') echo "$global --full --no-store --pull-policy= --signature= --store-only" ;;
	gc) echo "$global --expire-prepared= --grace-period= --mark-only" ;;
	'image cat-manifest') echo "$global --pretty-print" ;;
	'image export') echo "$global --format= --overwrite" ;;
	'image extract' | 'image render') echo "$global --overwrite --rootfs-only" ;;
	'image gc') echo "$global --grace-period= --max-size=" ;;
	'image list') echo "$global --fields= --format= --full --no-legend --order= --sort=" ;;
	list) echo "$global --format= --full --label= --name= --no-legend --quiet --running --state=" ;;
	logs) echo "$global --app= --follow --since= --tail= --timestamps --uuid-file=" ;;
	prepare) echo "$global $app $stage1 --hostname= --mds-register --net= --no-overlay --private-users --exit-policy= --inherit-env --mount= --pod-manifest= --port= --quiet --set-env= --set-env-file= --sysctl= --uuid-file-save= --volume=" ;;
	rm) echo "$global --uuid-file=" ;;
	run-prepared) echo "$global --accel= --apps-cpu= --apps-memory= --boot-timeout= --cgroup-parent= --cpus= --detach --dns= --dns-domain= --dns-opt= --dns-search= --hostname= --hosts-entry= --hot-volumes= --interactive --ipc= --kernel= --libvirt-uri= --machine= --mds-register
		--memory= --net= --netns= --private-users --qemu= --scratch-size= --virtiofsd= --vmm= --volume-ids= --vsock=" ;;
	run) echo "$global $app $stage1 --accel= --apps-cpu= --apps-memory= --boot-timeout= --cgroup-parent= --cpus= --detach --dns= --dns-domain= --dns-opt= --dns-search= --exit-policy= --hostname= --hosts-entry= --hot-volumes= --inherit-env --interactive --ipc= --kernel=
		--libvirt-uri= --machine= --mds-register --mount= --net= --netns= --no-overlay --pod-manifest= --port= --private-users --qemu= --scratch-size= --set-env= --set-env-file= --sysctl= --uuid-file-save= --virtiofsd= --vmm= --volume= --volume-ids= --vsock=" ;;
	stats) echo "$global --app= --format= --uuid-file=" ;;
	status) echo "$global --format= --uuid-file= --wait= --wait-ready=" ;;
	stop) echo "$global --force --uuid-file=" ;;
	top) echo "$global --count= --delay= --sort=" ;;
	update) echo "$global --app= --cpu= --cpu-shares= --memory= --pids-limit= --uuid-file=" ;;
	version) echo "$global --format=" ;;
	trust) echo "$global --insecure-allow-http --prefix= --root --skip-fingerprint-review" ;;
	*) echo "$global" ;;
	esac
}

# The values of FLAG, or nothing if it takes something that only the user knows.
_husk_values() { # COMMAND FLAG
	case "$1 $2" in
	'export --format' | 'image export --format') echo 'aci oci' && return ;;
	esac
	case $2 in
	--accel) echo 'auto kvm tcg' ;;
	--exit-policy) echo 'all-exited any-failure never' ;;
	--format) echo 'json json-pretty' ;;
	--insecure-options) echo 'none image tls ondisk http pubkey capabilities paths seccomp all-fetch all-run all' ;;
	--ipc) echo 'auto parent private' ;;
	--kernel) echo 'auto small packaged' ;;
	--hot-volumes) echo 'always auto' ;;
	--machine) echo 'auto microvm q35' ;;
	--dns) echo 'host none' ;;
	--net) echo 'all default default-restricted host none' ;;
	--order) echo 'asc desc' ;;
	--pull-policy) echo 'never new update' ;;
	--stderr | --stdout) echo 'log null stream tty' ;;
	--stage1) echo 'kvm ns' ;;
	--stdin) echo 'null stream tty' ;;
	--libvirt-uri) echo 'qemu:///embed qemu:///session qemu:///system' ;;
	--vmm) echo 'libvirt qemu' ;;
	--volume-ids) echo 'host mapped' ;;
	--vsock) echo 'auto kernel user' ;;
	esac
}

_husk_uuids() {
	husk list --quiet 2>/dev/null
}

_husk_images() {
	husk image list --no-legend --fields=name 2>/dev/null | tr -s '\n'
}

_husk() {
	local commands='app attach cat-manifest config doctor enter events export fetch gc help image list logs prepare rm run run-prepared stats status stop top trust update version'
	local image_commands='cat-manifest export extract fetch gc list render rm verify'
	local app_commands='add exec list rm sandbox start stats status stop'
	local cur prev words cword command='' i
	# The words as husk will see them: --flag=value is one.
	if declare -F _init_completion >/dev/null; then
		_init_completion -n = || return
	else
		cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
		words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
	fi
	COMPREPLY=()
	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		--dir | --insecure-options | --local-config | --stage1 | --system-config | --user-config) ((i++)) ;;
		-*) ;;
		*)
			command+=${command:+ }${words[i]}
			[ "$command" = app ] || [ "$command" = image ] || break
			;;
		esac
	done
	case $cur in
	--*=*)
		prev=${cur%%=*}
		cur=${cur#*=}
		;;
	-*)
		mapfile -t COMPREPLY < <(compgen -W "$(_husk_flags "$command")" -- "$cur")
		[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null
		return
		;;
	esac
	case $prev in
	--dir | --local-config | --stage1 | --system-config | --user-config)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--netns | --pod-manifest | --qemu | --set-env-file | --stage1-path | --uuid-file | --uuid-file-save)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--accel | --dns | --exit-policy | --format | --hot-volumes | --insecure-options | --ipc | --kernel | --libvirt-uri | --machine | --net | --order | --pull-policy | --stderr | --stdin | --stdout | --vmm | --volume-ids | --vsock)
		mapfile -t COMPREPLY < <(compgen -W "$(_husk_values "$command" "$prev")" -- "$cur")
		return
		;;
	esac
	case $command in
	'' | help) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	app) mapfile -t COMPREPLY < <(compgen -W "$app_commands" -- "$cur") ;;
	image) mapfile -t COMPREPLY < <(compgen -W "$image_commands" -- "$cur") ;;
	fetch | 'image fetch' | prepare | run | trust) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	export)
		# The UUID first, then the file.
		if [ "${words[cword - 1]}" = "$command" ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_husk_uuids)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	'image export' | 'image extract' | 'image render')
		# The image first, then where it goes.
		if [ "${words[cword - 1]}" = "${command#image }" ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_husk_images)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	'image cat-manifest' | 'image rm' | 'image verify') mapfile -t COMPREPLY < <(compgen -W "$(_husk_images)" -- "$cur") ;;
	'app add')
		# The UUID first, then the image.
		if [ "${words[cword - 1]}" = add ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_husk_uuids)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	'app sandbox' | 'image gc' | 'image list') ;;
	'app '* | attach | cat-manifest | doctor | enter | events | logs | rm | run-prepared | stats | status | stop | top | update) mapfile -t COMPREPLY < <(compgen -W "$(_husk_uuids)" -- "$cur") ;;
	esac
}

complete -F _husk husk

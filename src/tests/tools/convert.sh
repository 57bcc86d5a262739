# SPDX-License-Identifier: BSD-2-Clause
# rxvol convert: a store of format 2, whose process was killed, is converted. Below it is as a tar file, compressed by xz. The checksums
# of the contents were computed from an export by a program of that format.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
[ -x "$rxvol" ] || { echo "SKIP: rxvol is not built"; exit 77; }
for tool in base64 xz tar sha256sum; do
	command -v $tool > /dev/null || { echo "SKIP: no $tool"; exit 77; }
done
store=$work/store

vol() {
	"$rxvol" -S "$store" "$@" > "$work/out" 2>&1 < /dev/null || fail "rxvol $*: $(head -n 3 "$work/out")"
}

# Two files in objects, of which one has two slots, a hole and a clone; one in a row; the log is not in the database yet.
mkdir -m 700 "$store" || exit 99
base64 -d << 'END' | xz -d | tar -x -C "$store" || exit 99
/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM///+BKJdACMTxopQH4p+tx0i2WNGPn3Bt4FTSxs1cwqnr7WE/qNp2s0l2cGVu1dOk5t/
g17rUdVDWP4hpqFJ1UuwlKR2tRMmq/iE468sOER7VR2EE6qWk1f/kdnlXoKPPn585UhZabss+DykUd5xV1007S77QMIkvrDgOk7V
G+Xln0iGVVUakVQscV9XSKKmT45ayDm2AHIi8lMJ4HOEC7ycMfV07CorgygW4YudhZ8ZfEHi51Jpw2d3Ekz5Dw1C1HVGjgDqNdQ2
VwY7K1M+Gerjak+NUeFmZZGfckJC0KKCLkurMoIH1rl1Pbc66yX28cGYl0IxO/iSyoiB2u5d8dYhhHh+0EMLUdfpd4vAPffXFumL
vf4PcBfOMGbZ5lzpQ/1Fw5Nee/oMgb0Lc5kjxExr/NwJSL/nXgD+Mzek7ISW/XpiQ6huKZrEZQ7uwYwVnUzs5Anr0ZtOU+sLxCZG
aoQ7pE1lvyrMb2Av4P0NFP6kk/lPmbDwLxwCyb4pdr4kLc8cMEBLzW/m0z2b7IFXwnUCbggrw63N0FYE2ZBlf3v6iZj+SlJIBUow
0sqsGijydrUBnAjM9M1Gb9LeJ1AlGRSyG2+JrKC1S+TSmBYb8mQJFrg5Olm6OT2yaqIirxHPBvyWHW6lpofEV6Jh6zQMhrxcHDOL
4H/u+vbeNVy2j/lj239Fxh93bpvJspagDOSzu2KUZoFHbtHVerOsVBiRPOO5CS0U1vqeT4HpaF0h207fyTAduItiBo1k82XhbJzV
NhOfXUPuwf3/yptp03CYiaFFs7fF3J2XtION2VblK6l2pgYXRHxXE7t5+qbTVII/I48wJgrffmWsL9H61s5IvVHF9Pyd2iX0kgD8
ntSXYKo3nStHCcOfMAM0+6DbG3YOuA5gWgH+4h3jOyRnZTSq9cSityfg76L7YbhLX4nGZk+kXjTjAD1bLQcvxSfJ0/LaGiGfQsWq
uqQuS3phBTB0ufjX0RM5X60deiYvqWTIpbcszOEOdgLr5xjq/EmNnsywNbmLdWWClYh1qVVeeKNJQVVaYKpoBK8k9Qi5txD+4bLG
aa02ktNLorAOSSYkAXsFpSE2H6otrqmDkUeSKqUi2MF+1EyRa6wvTDh0hU4HA4MTbS6NeS6+GgSRAJWRTy7OCLn7UVwXlCEsDEHc
vN6907xCetERx4Qnsz4CY1ouQNBGtaj/9Poq0lgfW3ffOWepD6zsJ7EVPXWEji05cDX8j0C1ngme/uNPqYGq7CKN8yQmI6j4BovZ
9X/WDRs/fXergxQhbtHVevM+FFNidqxZ5OVbBQj5x9qt/PtSK3TNHlsgQvndUz34KWQJO4DLKmzftTvwxL0uX6oPPktmQpATDv8Q
k/hxeFn4C83/lShGD6n8fN77mjAuVsCPhfODgcBlxCVT+PWRNjEFpbDub8FwTUcM0ZERqq1gHbrOsScYXFmG6WZSWL7pdqxZ5OVb
BQj5x9qt/PtSK3TNHlsgQvndUz34KWQJO4DLKmzftTvwxL0uX6oPPktmQpATDv8Qk/hxeFn4C83/lShGD6n8fN77mjAuVsCPhfOD
gcBlxCVT+PWRNjEFpay1d/Gf/xABKwDsc1On/b6ufDEan7eNMW5wnqcjX+woy4XRlZiKfiqR8id19xnABphNmP3Yr9WQD8QlU/j1
kTYxBaWw7m/BcE1HDNGREaqtYB26zrEnGFxZhulmUli+6XasWeTlWwUI+cfarfz7Uit0zR5bIEL53VM9+ClkCTuAyyps37U78MS9
Ll+qDz5LZkKQEw7/EJP4cXhZ+AvN/5UoRg+p/Hze+5owLlbAj4Xzg4HAZcQlU/j1kTYxBaWw7m/BcE1HDNGREaqtYB26zrEnGFxZ
hulmUli+6XasWeTlWwUI+cfarfz7Uit0zR5bIEL53VM9+ClkCTuAyyps37U78MS9Ll+qDz5LZkKQEw7/EJP4cXhZ+AvN/5UoRg+p
/Hze+5owLlbAj4Xzg4HAZcQlUQ8/sp//EAErAOxzU6f9vq58MRqft40xbnCepyNf7CjLhdGVmIp+KpHyJ3X3GcAGmE2Y/div1ZAP
xCVT+PWRNjEFpbDub8FwTUcM0ZERqq1gHbrOsScYXFmG6WZSWL7pdqxZ5OVbBQj5x9qt/PtSK3TNHlsgQvndUz34KWQJO4DLKmzf
tTvwxL0uX6oPPktmQpATDv8Qk/hxeFn4C83/lShGD6n8fN77mjAuVsCPhfODgcBlxCVT+PWRNjEFpbDub8FwTUcM0ZERqq1gHbrO
sScYXFmG6WZSWL7pdqxZ5OVbBQj5x9qt/PtSK3TNHlsgQvndUz34KWQJO4DLKmzftTvwxL0uX6oPPktmQpATDv8Qk/hxeFn4C83/
lShGD6n8fN77mjAuVsCPhfODgcBlxCVRDz+yn/8QASsA7HNTp/2+rnwxGp+3jTFucJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaYTZj9
2K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1IrdM0eWyBC+d1TPfgpZAk7
gMsqbN+1O/DEvS5fqg8+S2ZCkBMO/xCT+HF4WfgLzf+VKEYPqfx83vuaMC5WwI+F84OBwGXEJVP49ZE2MQWlsO5vwXBNRwzRkRGq
rWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1IrdM0eWyBC+d1TPfgpZAk7gMsqbN+1O/DEvS5fqg8+S2ZCkBMO/xCT+HF4
WfgLzf+VKEYPqfx83vuaMC5WwI+F84OBwGXEJVEPP7KO0s0G4gDsc1On/b6ufDEan7eNMW5wnqcjX+woy4XRlZiKfiqR8id19xnA
BphNmP3Yr9WQD8QlU/j1kTYxBaWw7m/BcE1HDNGREaqtYB26zrEnGFxZhulmUli+6XasWeTlWwUI+cfarfz7Uit0zR5bIEL53VM9
+ClkCTuAyyps37U78MK/NFXIL4TWAKtc3HFKiFQ9l8s6tMupvxuQvpfz4pp6t091AZb5bABRCqqZAOrTTIKoslyRsOxS0KAHjjNa
5Xe9/AzI5eygy1+MiH5g+JAPMjD1tJnT9eMiPXRElRRjqZB3zE//gmFj+B3mxMyLkrt3kyQhVCItO3rE/CtOabFObYTqCxZuHs2n
2cekLueNfYZxA7pmxMv+WK0cGQvMpLrw5tJNIEln0KGTc5gkJtLWz7ZtCWIjDdYdE71gGJCSuW786hzKYmN0yDf3heG8AEYGT03t
MR419pia3xoL1wdnYtglMt5tKBOv0qx8y0PlpcmlkwU+s9aM5eiLREWAfC4ZZ294mzJS1j9TE8wFJCy7NowCVxplytaDdyi24OmP
zzKY24rtafxo13GTHWBATFREn95lAlEOl+CM7UO4EZb5Clm8z5NEN3F3WNgsKSgxaJzufb+3RAIPgUGYr9zkMr33XzmhG9FORHBC
vw9X6MvqnRT5Xi429u3Tzgqg1h91IRBMyWcb0Crz33TFgem1DEBc4vGoDhvjGFxOyeBPXK7Gyxg6GYfC+4TfhVDWK5ccWdT+jP1K
ClPC/sygowAm/1HScZSt8ZmNAPjfiJE10zL8gCfAtlLcWAFozCRfU3QOORyTjhZJ58M4LVK2TaOi33vUakl/3FemCq2WXVdDHvS/
JzlB+8Q2rGMTaR1KHHykvDvWXdgIt4y94NTxGKjecsFwgGzzGeZkLffPtviQ4hIWI9HZxaRK80GIPSsFgH1nIs/B1FGkbbxxJTXe
o+f2fE7udSJPk5KuSM69hBtnnZdzFyioIh6U51YUeVEvoAUm9uI/Kn3YP+ZUq28w13EJTFgnINnILnS2+78NmUbc4T/LeGKq98OY
PNPSMLjqebURxL1AkkWhLCml26yJa7wTuZy2SlxlpCgWv7IeV/wufNrWWGuusSBjtQm1HP3+eNUDQeIRrlH73G5mUYFSVeUS58K2
dauCH19EIa2yK5tj+UZxCT/uLnCM/Kem17p3hN/FvcMCXEG4MPrJEFxsVUsgtfxcRPKuXQNHFXrwuvl+FxVg4Iz+HozqydWMp7Rl
QoovgBN7MEKOu/8ocPGouCzu2QJGwyV+cuvr6cXH5YS7KIcQA2QIgp7wAbWu5a1Bkr9x3jSIki6P93Y5lj99Dy3T+PqBiyuyXYFo
30Z4QgVlnWsYiHl2+JWajXoyh0KMG59ulmAf+4elN5Kfvp1pf8yv2yrib62g3si4yUWVcGYD9D0oZJ6F6xA+VD4QLiiQvDw2io4p
tIqUNUot7WU+8JyXlT2rfpSCCU+EWcF4i6KGa7ThPn5w85ywEaFp5gHIrojkZ8xhjSBc6HII48KTyQFS/VD3SBTVTzYAsX68meaS
K8dpEuGYh3uNOWePz5bRQi/tCa9Z+JtusQ1Ph2GvfOG8R8f+HJW+Groqz0fq0kqH2ejRo01m+bLbWXIyGud+pE+XyTcdRgEqET1B
vaAxjwdqIUVHu9ez+D+YlCv0haKWUoBulqtZ4n9ZHJm/2xN114UXVqfAgJ48Nm+RagHMmOJltArtZ1vMV/2VazuMbO+S4nfq0bXV
4JOxSnZKphgEjys2VGYTDC8nirYTSoyO6UEfKKti0Q4V/mpaDd91g1rywKRLQBxS53WPalxM1Bbd5PI4Wnr3TUbyJbTEy+DPUGVo
8itHmMOA2HB+BBIGvSWUxB6fbTFnxnow5S+YHtrn7eatZhhxJjwiPsAajJjhonvAfLvAfRFLqUWo6ME6o/ZLKQZ52Q/r3q6ebw+z
f4lfxrTUdQOfRUTzHqwvCuuwx4es+kana5sDAfsdRaf/BT+qoxqhh6E3DzVkXZgf5/7vmOHc0/QU1Y2p8BDpydP1jPk30uW/dOXn
UPb9vH8CYmxMgsYStafZry3QDhmJygB6Rc8PtlsQBNHome9M5Q4a7WD/5fMDzr0EiMGpa/GA+nRo7XvnraAP0k1kzveGklE+9TqO
Xn9mKD7XlStuulMXIdvN/Pbl0c3v5z7GQpzyjQgwuMiYdx2StTtOyFBc7L7qwiyDKVm+Bld4EV14NTgTP94jEZkVIrw6ySGvJzJI
CNFThlb8FS4oqEDmtUl6I24ZVw6Ifio5wpfNGR5avibzr9fyeqSM12LEXyzJzADmQTY4ac+wCLIiqjkSwqh+6fkQ7pgwZ1As0p3g
AAAAACAtQDaEzPu/AAG5HoCguwSy5z0VscRn+wIAAAAABFla
END
cp -a "$store" "$work/early" && cp -a "$store" "$work/late" || exit 99
refused 1 'has an older format' "$rxvol" -S "$store" list
vol convert
grep -q 'converted$' "$work/out" || fail "$(cat "$work/out")"
[ ! -e "$store/remade" ] && [ ! -e "$store/meta/db.damaged" ] || fail "left over: $(ls -R "$store/meta")"
# A conversion that was stopped when the new database was complete, before and after the new FORMAT.
for stopped in early late; do
	mkdir -m 700 "$work/$stopped/remade" && cp "$store/meta/db" "$work/$stopped/remade/complete" &&
		cp -a "$store/files" "$work/$stopped" || exit 99
done
cp "$store/FORMAT" "$work/late/FORMAT"
refused 1 'has an older format' "$rxvol" -S "$work/early" list
"$rxvol" -S "$work/early" convert > "$work/out" 2>&1 || fail "once more: $(cat "$work/out")"
for stopped in early late; do
	"$rxvol" -S "$work/$stopped" check --data > "$work/out" 2>&1 || fail "$stopped: $(cat "$work/out")"
	[ ! -e "$work/$stopped/remade" ] || fail "$stopped: the new database is not in its place"
	[ "$("$rxvol" -S "$work/$stopped" list | wc -l)" = 2 ] || fail "$stopped: not all volumes"
done
vol convert
grep -q 'has the present format already$' "$work/out" || fail "$(cat "$work/out")"
vol check --data
grep -q 'is sound$' "$work/out" || fail "$(cat "$work/out")"
for volume in v v.readonly; do
	mkdir "$work/$volume"
	vol -q export $volume "$work/$volume"
done
cd "$work" || exit 99
sha256sum -c --quiet << 'END' || fail "contents changed"
b83bc6827ea72960449b656afebc9e8ce6bab24d74ff4a03938ff6f609245dbe  v/large
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  v/empty
19fe106b9b9c6b46d37c1d49e0140a3b079d84a2a8db6a12a67b7aeed6006cd4  v/d/small
b86757a21a939b4569323ec12cb5be9f43b803bbc7d5772485a0c96f89ffc4a4  v.readonly/large
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  v.readonly/empty
b923bd4c3414ee9941a6f7c5201c1f5c3302120a68f58e78634280454208cb09  v.readonly/d/small
END
[ "$(find v v.readonly ! -type d | wc -l)" = 6 ] || fail "names: $(find v v.readonly)"
result
